"""A summary that is written with a chapter may tell the days on which its facts were said, and no others.

The table `chapter_days.toml` has what is known, the days, and sentences of both kinds.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from compaction.model import Chapter, ChapterId, Fact, FactKind, Seq
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import ChapterPart, ChapterRequest, KnownFact
from tests.compaction.summary.test_paragraph_writer import Says
from tests.compaction.turn_store_contract import EVENING

PEOPLE = frozenset({"Ada", "Bob", "Ines", "Kofi", "Wanda", "Bas", "Robert", "Nancy"})
# Of the half kept apart, when it was looked at: none of its 17 true sentences was kept before the rules were made.
LEAST_KEPT_APART = 17
MOST_INVENTED_APART = 0
THURSDAY = datetime(2026, 1, 1, 20, tzinfo=UTC).timestamp()


def table(*, apart: bool) -> list[dict[str, Any]]:
    with (Path(__file__).parent / "chapter_days.toml").open("rb") as file:
        found: list[dict[str, Any]] = tomllib.load(file)["case"]
    return [each for each in found if each.get("apart", False) is apart]


def request_of(case: dict[str, Any]) -> ChapterRequest:
    facts = [
        Fact((Seq(number),), FactKind.OTHER, "Ada", noon(each["day"]), each["text"], subject="Ada", quoted=False)
        for number, each in enumerate(case["facts"])
    ]
    known = tuple(KnownFact(f"s0#{number}", fact) for number, fact in enumerate(facts))
    begun, ended = noon(case["days"][0]), noon(case["days"][-1])
    part = ChapterPart(Seq(0), Seq(9), begun, ended, case["gist"], known)
    return ChapterRequest(1, (part,), (), (), known, roster=PEOPLE)


def noon(day: date) -> float:
    return datetime.combine(day, time(12), UTC).timestamp()


def is_kept(request: ChapterRequest, text: str, zone: str = "UTC") -> bool:
    """Return whether a summary that is written with this chapter is used at once and as it is written."""
    model = Says(json.dumps({"gist": request.parts[0].gist, "facts": [], "paragraph": text}))
    summariser = LlmSummariser(model, max_output_tokens=700, zone=ZoneInfo(zone))
    return asyncio.run(summariser.fold_chapter(request)).paragraph == text and len(model.requests) == 1


def sentences(cases: list[dict[str, Any]], *answers: str) -> list[Any]:
    """Return each case with its sentences under these answers. Those under the second are not judged right so far."""
    return [
        pytest.param(each, text, marks=pytest.mark.xfail(strict=True) if answer in answers[1:] else (), id=text)
        for each in cases
        for answer in answers
        for text in each.get(answer, [])
    ]


@pytest.mark.parametrize(("case", "text"), sentences(table(apart=False), "kept", "lost"))
def test_a_day_that_follows_from_what_is_known_may_be_told(case: dict[str, Any], text: str) -> None:
    """The days of the talk, and what 'tomorrow' or a weekday meant on them, are no inventions."""
    assert is_kept(request_of(case), text)


@pytest.mark.parametrize(("case", "text"), sentences(table(apart=False), "refused", "let_through"))
def test_a_day_that_nobody_meant_is_sent_back(case: dict[str, Any], text: str) -> None:
    """Another day, weekday, month or year than that of the talk still needs somebody who said it."""
    assert not is_kept(request_of(case), text)


def test_the_half_kept_apart_is_judged_as_well() -> None:
    """So many of its true sentences are kept, and no more inventions than before."""
    judged = {
        answer: [is_kept(request_of(each), text) for each in table(apart=True) for text in each[answer]]
        for answer in ("kept", "refused")
    }
    assert sum(judged["kept"]) >= LEAST_KEPT_APART
    assert sum(judged["refused"]) <= MOST_INVENTED_APART


def test_the_days_of_earlier_chapters_may_be_told() -> None:
    """A summary tells of all stretches, also of those before the chapter."""
    earlier = Chapter(ChapterId("c0"), EVENING, 1, Seq(0), Seq(0), THURSDAY, THURSDAY, "Ada met Bob.", (), "llm")
    part = ChapterPart(Seq(0), Seq(9), THURSDAY + 7 * 86_400.0, THURSDAY + 7 * 86_400.0, "Bob left.", ())
    request = ChapterRequest(1, (part,), (earlier,), (), (), roster=PEOPLE)
    assert is_kept(request, "Ada met Bob on Thursday, 1 January, and Bob left on Thursday, 8 January.")
    assert not is_kept(request, "Ada met Bob on Thursday, 15 January.")


@pytest.mark.parametrize(("zone", "day"), [("UTC", "Thursday, 1 January"), ("Asia/Tokyo", "Friday, 2 January")])
def test_the_days_are_those_of_the_people(zone: str, day: str) -> None:
    """Late in the evening of one zone it is the next day in another."""
    request = ChapterRequest(1, (ChapterPart(Seq(0), Seq(9), THURSDAY, THURSDAY, "Ada met Bob.", ()),), (), (), ())
    told = {each: is_kept(request, f"On {each}, Ada met Bob.", zone) for each in ("Thursday, 1 January", day)}
    assert told == {"Thursday, 1 January": zone == "UTC", day: True}
