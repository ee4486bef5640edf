"""Results of short requests are kept for a while, and only those."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tandem.services.computing import Times
from tandem.services.recent import RecentResults
from tandem.services.requests import TranslateRequest, TranslateResult
from tests.support.clock import FakeClock

ASKED = TranslateRequest(("保存文件。",), "zh", "en")
RESULT = TranslateResult(("Save file.",), (), "en", (), Times(queue_ms=1.0, compute_ms=20.0, hits=1, misses=2))


def test_what_is_asked_again_comes_back_as_found_and_took_no_time():
    recent = RecentResults(60)
    recent.keep(ASKED, RESULT)
    assert recent.find(replace(ASKED)) == replace(RESULT, times=Times(hits=3))


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, texts=("打开文件。",)),
        replace(ASKED, source="auto"),
        replace(ASKED, target=""),
        replace(ASKED, format="html"),
        replace(ASKED, alternatives=1),
        replace(ASKED, target_prefix="Keep"),
        replace(ASKED, glossary={"文件": "document"}),
    ],
)
def test_another_request_is_another_result(other):
    recent = RecentResults(60)
    recent.keep(ASKED, RESULT)
    assert recent.find(other) is None


@pytest.mark.parametrize(
    "asked",
    [
        replace(ASKED, texts=("长" * 401,)),
        replace(ASKED, texts=ASKED.texts * 2),
        replace(ASKED, glossary={"文件": "document"}),
    ],
)
def test_long_texts_lists_and_glossaries_are_not_kept(asked):
    recent = RecentResults(60)
    recent.keep(asked, RESULT)
    assert recent.find(asked) is None


@pytest.mark.parametrize(("ttl_s", "kept_s"), [(5.0, 5.0), (86_400.0, 60.0)])
def test_a_result_is_kept_for_a_minute_and_never_longer_than_the_cache_keeps_it(ttl_s, kept_s):
    clock = FakeClock()
    recent = RecentResults(ttl_s, clock)
    recent.keep(ASKED, RESULT)
    clock.advance(kept_s - 0.1)
    assert recent.find(ASKED) is not None
    clock.advance(0.2)
    assert recent.find(ASKED) is None


def test_where_nothing_is_cached_nothing_is_kept_here_either():
    recent = RecentResults(0)
    recent.keep(ASKED, RESULT)
    assert recent.find(ASKED) is None


def test_the_least_recently_used_goes_first():
    recent = RecentResults(60)
    asked = [replace(ASKED, texts=(str(number),)) for number in range(1025)]
    for request in asked[:1024]:
        recent.keep(request, RESULT)
    assert recent.find(asked[0]) is not None
    recent.keep(asked[1024], RESULT)
    assert recent.find(asked[0]) is not None
    assert recent.find(asked[1]) is None
