"""POST /translate with a glossary, through a real server."""

from __future__ import annotations

from tests.support.server import Server


def test_terms_stand_where_their_words_were_in_both_directions(server: Server) -> None:
    for text, glossary, word in (
        ("请检查网络。", {"网络": "Zorblatt"}, "network"),
        ("Please update the image.", {"image": "星门"}, "图像"),
    ):
        plain = server.ask("/translate", {"text": text})[1]["translation"]
        _, answer = server.ask("/translate", {"text": text, "glossary": glossary})
        assert word in plain
        [term] = glossary.values()
        assert answer["translation"] == plain.replace(word, term)


def test_a_glossary_holds_for_every_text_of_a_list(server: Server) -> None:
    texts = ["请检查网络。", "请打开文件。", "请更新网络。请检查文件。"]
    _, answer = server.ask("/translate", {"text": texts, "glossary": {"网络": "Zorblatt", "文件": "Omnivault"}})
    translations = answer["translation"]
    assert [text.count("Zorblatt") for text in translations] == [1, 0, 1]
    assert [text.count("Omnivault") for text in translations] == [0, 1, 1]
    assert not any("network" in text or "file" in text for text in translations)


def test_an_aligned_translation_comes_from_the_cache_the_second_time(server: Server) -> None:
    body = {"text": "请移动这些图片和文件。", "glossary": {"文件": "Omnivault"}}
    first, second = (server.ask("/translate", body)[1] for _ in range(2))
    assert second["translation"] == first["translation"]
    assert second["cache"]["misses"] == 0
    assert "Omnivault" in first["translation"]


def test_a_glossary_may_come_with_a_beginning_and_alternatives(server: Server) -> None:
    body = {"text": "请检查网络。", "glossary": {"网络": "Zorblatt"}}
    _, begun = server.ask("/translate", {**body, "target_prefix": "Kindly check"})
    assert begun["translation"].startswith("Kindly check")
    assert begun["translation"].count("Zorblatt") == 1
    _, named = server.ask("/translate", {**body, "target_prefix": "The Zorblatt"})
    assert named["translation"].startswith("The Zorblatt")
    assert named["translation"].count("Zorblatt") == 1
    _, several = server.ask("/translate", {**body, "alternatives": 3})
    assert all("Zorblatt" in one["target"] for one in several["alternatives"][0])
