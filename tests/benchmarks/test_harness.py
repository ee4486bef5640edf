from benchmarks.harness import Spread, alternate, build_row, render_table, summarise
from benchmarks.machine import parse_instruction_sets
from benchmarks.official import plan_requests
from benchmarks.twin import best_pair, random_sources


def row():
    return build_row(
        Spread(10.0, 9.0, 12.0), Spread(25.0, 24.0, 30.0), peer="official", batch=8, precision="float32",
        peer_precision="float32", model="demo", rounds=3,
    )  # fmt: skip


def test_the_first_round_does_not_count_and_sides_alternate():
    seen = []
    times = {"a": iter([100.0, 3.0, 1.0, 2.0]), "b": iter([200.0, 6.0, 4.0, 5.0])}

    def side(name):
        def run():
            seen.append(name)
            return next(times[name])

        return run

    spreads = alternate({"a": side("a"), "b": side("b")}, rounds=3)
    assert seen == ["a", "b"] * 4
    assert spreads == {"a": Spread(2.0, 1.0, 3.0), "b": Spread(5.0, 4.0, 6.0)}


def test_a_spread_is_median_and_extremes():
    assert summarise([4.0, 1.0, 2.0]) == Spread(2.0, 1.0, 4.0)


def test_the_ratio_is_above_one_where_we_are_faster():
    assert row().ratio == 2.5


def test_the_table_names_peer_and_ratio():
    assert "official" in render_table([row()]) and "2.50" in render_table([row()])


def test_instruction_sets_are_read_from_the_kernels_flags():
    found = parse_instruction_sets("fpu avx2 avx512f avx_vnni")
    assert found == {"avx2": True, "avx512f": True, "avx512_bf16": False, "avx512_vnni": False, "amx": False}


def test_every_size_covers_the_same_sentences():
    sentences = [str(number) for number in range(64)]
    covered = [[text for request in plan_requests(sentences, size) for text in request] for size in (1, 8, 32)]
    assert covered == [sentences[:32]] * 3


def test_random_sources_avoid_end_marks_and_special_ids():
    ids = {token for source in random_sources(64, 100) for token in source}
    assert min(ids) >= 1 and max(ids) < 98


def test_the_best_pair_is_the_fastest_of_each_side():
    spreads = {name: Spread(value, value, value) for name, value in (("o1", 2), ("o2", 1), ("p1", 3), ("p2", 4))}
    assert best_pair(spreads, ["o1", "o2"], ["p1", "p2"]) == ("o2", "p1")
