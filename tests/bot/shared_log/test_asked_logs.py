"""What a tail makes of the answers of other processes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.shards import parse_shards
from bot.shared_log.asked_logs import MOST_PROCESSES, SILENT_S, AskedLogs
from bot.shared_log.messages import LogAnswer
from bot.shared_log.time_order import TimeOrder, time_of_line

OWN, OTHER, RUN = "0" * 16, "1" * 16, "2" * 16
ANSWER = LogAnswer(OTHER, "north", "2-3/4", RUN)
OURS = LogAnswer(OWN, "here", "0-1/4", RUN)
RUNNING = (parse_shards("0-3/4"),)


def line(event: str, **more: Any) -> str:
    """Return a line of a log."""
    return json.dumps({"timestamp": "2026-11-20T04:11:05Z", "level": "info", "event": event, **more})


def test_each_line_says_whose_it_is() -> None:
    """Machine and shards, in the event and in its JSON."""
    asked = AskedLogs(OWN)
    ((text, event),) = asked.hear(replace(ANSWER, lines=(line("one"),)), 0.0)
    assert event["process"] == "north:2-3/4"
    assert json.loads(text) == event
    assert asked.seen() == {OTHER: "2026-11-20T04:11:05Z"}


def test_it_is_complete_when_all_shards_have_told_their_logs() -> None:
    """The process whose log is read here needs only answer."""
    asked = AskedLogs(OWN)
    assert asked.absent(4) == "0-3/4"
    assert asked.hear(replace(OURS, lines=(line("one"),)), 0.0) == []
    assert asked.absent(4) == "2-3/4"
    asked.hear(ANSWER, 0.0)
    assert (asked.absent(4), asked.has_all_of(RUNNING)) == ("", False)
    asked.hear(replace(ANSWER, caught_up=True), 0.0)
    assert asked.has_all_of(RUNNING)
    assert asked.take_sentences() == []


def test_what_is_missing_is_said() -> None:
    """Lost and unreadable lines, older ones, refusals, silence and its end; each once."""
    asked = AskedLogs(OWN)
    asked.hear(replace(ANSWER, lines=(line("one"), "rubbish"), older=True), 0.0)
    asked.hear(replace(ANSWER, first=5, lines=(line("two"),), older=True), 0.0)
    said = asked.take_sentences()
    assert [each.partition(":")[0][:40] for each in said] == [
        "Lines of north",
        "Of each other process at most the last 5",
        "Lines of north",
    ]
    assert "lost on the way: 3." in said[2]
    for _ in range(2):
        asked.look_for_silence(SILENT_S + 1)
    assert asked.take_sentences() == ["north:2-3/4 does not answer any more."]
    # Another run counts anew.
    asked.hear(replace(ANSWER, run="3" * 16), SILENT_S + 1)
    assert asked.take_sentences() == ["north:2-3/4 answers again."]
    asked.hear(replace(ANSWER, origin="4" * 16, refused=True), 0.0)
    assert asked.take_sentences() == ["north:2-3/4 does not tell its log: too many ask already."]
    # It is asked again and again, and nobody need read that of the log that is shown anyway.
    asked.hear(replace(ANSWER, origin="4" * 16, refused=True), 10.0)
    asked.hear(replace(ANSWER, origin=OWN, refused=True), 10.0)
    assert asked.take_sentences() == []


def test_a_line_that_comes_twice_is_shown_once() -> None:
    """The process did not learn that it had been told, or somebody repeats an answer."""
    asked = AskedLogs(OWN)
    one, two, three = (line(each) for each in ("one", "two", "three"))
    heard = [
        [event["event"] for _, event in asked.hear(replace(ANSWER, first=first, lines=lines), 0.0)]
        for first, lines in ((0, (one, two)), (0, (one, two)), (1, (two, three)), (0, (one,)), (3, (one,)))
    ]
    assert heard == [["one", "two"], [], ["three"], [], ["one"]]
    assert asked.take_sentences() == []


def test_what_a_break_has_cost_is_said_of_each_process() -> None:
    """Also if it was said at the beginning that there are older lines: nobody thinks of a gap then."""
    asked = AskedLogs(OWN)
    asked.hear(replace(ANSWER, lines=(line("one"),), older=True), 0.0)
    assert len(asked.take_sentences()) == 1
    for run in ("3" * 16, "4" * 16):
        for first in (0, 1):
            asked.hear(replace(ANSWER, run=run, first=first, lines=(line("two"),), older=True), 0.0)
        (said,) = asked.take_sentences()
        assert said.startswith("More lines of north:2-3/4 came during a break than it tells afterwards")


def test_hostile_answers_change_nothing_on_a_terminal() -> None:
    """Neither lines nor names bring control characters, and processes are counted."""
    asked = AskedLogs(OWN)
    ((text, event),) = asked.hear(
        replace(ANSWER, machine="\x1b[2Jno rth\n", lines=(line("one", detail="\x1b]0;x\x07"),)), 0.0
    )
    assert event["process"] == "[2Jnorth:2-3/4"
    assert "\x1b" not in text + event["detail"]
    assert asked.hear(replace(ANSWER, shards="\x1b", lines=(line("one"),)), 0.0) == []
    for number in range(2 * MOST_PROCESSES):
        asked.hear(replace(ANSWER, origin=f"{number:016x}"), 0.0)
    assert asked.hear(replace(ANSWER, origin="f" * 16, lines=(line("one"),)), 0.0) == []


@given(st.lists(st.lists(st.integers(0, 59), max_size=5), max_size=12))
def test_lines_come_in_the_order_of_their_times_and_none_is_lost(batches: list[list[int]]) -> None:
    """Each time that lines are shown they are in order, and all are shown once."""
    order, shown = TimeOrder(), []
    for batch in batches:
        events = [{"timestamp": f"2026-11-20T04:11:{second:02}Z", "event": "one"} for second in batch]
        now = order.add((json.dumps(each), each) for each in events)
        assert now == sorted(now, key=time_of_line)
        shown += now
    shown += order.rest()
    assert sorted(int(event["timestamp"][-3:-1]) for _, event in shown) == sorted(
        second for batch in batches for second in batch
    )


def test_an_earlier_line_that_comes_later_is_shown_before() -> None:
    """If it comes within a second."""
    order = TimeOrder()
    seconds: list[str] = []
    for batch in ([5], [3], [], [], [], [], []):
        events = [{"timestamp": f"2026-11-20T04:11:0{second}Z", "event": "one"} for second in batch]
        seconds += [event["timestamp"][-2] for _, event in order.add(("", each) for each in events)]
    assert seconds == ["3", "5"]
