"""A written scenario of three hours: no turn is lost, memory grows only by what is folded, and what was said first is
still known.

The expectations are read from the report that `roomtone rehearse three-hours` makes too. The numbers of objects and
tasks are counted here, because only this process can see them.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.brain.wakeword import SpokenWords
from bot.events import SpokenText
from compaction.model import Segment, Turn
from compaction.summary.port import MAX_SUMMARY_CHARS
from compaction.turn_buffer import CAPACITY
from compaction.window import BATCH_SIZE, RECENT_WINDOW
from rehearsal.judge.report_builder import build_report
from rehearsal.report.report import RehearsalReport
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from rehearsal.roomtone.written.room import WrittenRoom
from rehearsal.roomtone.written.services import written_settings
from rehearsal.runner.local_servers import ServerObservations
from rehearsal.runner.play import ScenarioRun
from rehearsal.runner.ports import RunObserver
from rehearsal.runner.record import ObservationCallback, RunRecord
from rehearsal.script.expectations import ExpectAnswer
from rehearsal.script.scenario import Scenario
from rehearsal.script.scenario_file import bundled_scenarios, load_scenario
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance
from voice.speaking.playback import QUEUE_PIECES, REMEMBERED_PIECES, QueuedSpeech
from voice.speaking.port import Speech
from voice.transport.audio_events import SpeechFrames

pytestmark = pytest.mark.slow

OURS = ("bot.", "compaction.", "voice.")
EVENING_S = 3 * 3600.0
# The most tokens that a prompt may have in this evening.
MAX_INPUT_TOKENS = 10_000
# Classes that hold recent sound or words. Only a few objects of each may exist at any time.
PASSING = (SpokenText, Recognition, Utterance, Speech, SpeechFrames)
MOST_PASSING = 12


@dataclass(frozen=True, slots=True)
class Evening:
    """The result of the evening. `living`: how many of our objects existed at each full hour and at the end. `moved`:
    how many segments were queued, compressed and archived. `status`: what /status said at the end.
    """

    scenario: Scenario
    record: RunRecord
    report: RehearsalReport
    lasted_s: float
    living: tuple[Counter[type], ...]
    logs: tuple[str, ...]
    moved: Counter[str]
    status: str
    tasks_left: tuple[str, ...]


def own_objects() -> Counter[type]:
    """Count the existing objects of our own classes."""
    gc.collect()
    return Counter(type(each) for each in gc.get_objects() if str(type(each).__module__).startswith(OURS))


def whole_evening() -> Scenario:
    return load_scenario(bundled_scenarios()["three-hours"])


class Counting(RunObserver):
    """Counts the living objects at each full hour of the evening. Those that other tests keep alive do not count."""

    def __init__(self) -> None:
        self._elsewhere = own_objects()
        self.living: list[Counter[type]] = []

    def count(self) -> None:
        self.living.append(own_objects() - self._elsewhere)

    def spoken(self, at_s: float, speaker: str, reference: str) -> None:
        if at_s >= 3600 * (1 + len(self.living)):
            self.count()


@cache
def uncounted(kind: type) -> type:
    """Return a class of this test like one of ours."""
    return type(kind.__name__, (kind,), {"__slots__": (), "__module__": __name__})


def copied(value: Any) -> Any:
    """Return a copy for the record, which keeps what the bot must not: its objects are not counted as the bot's."""
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    if not is_dataclass(value):
        return value
    kind: type = type(value)
    return uncounted(kind)(**{each.name: copied(getattr(value, each.name)) for each in fields(kind)})


async def play(scenario: Scenario) -> Evening:
    """Play a whole evening."""
    before, counting = asyncio.all_tasks(), Counting()

    class Watched(WrittenRoom):
        """A room that is looked at before the bot leaves it."""

        shown = ""

        async def start(self, report: ObservationCallback) -> None:
            await super().start(lambda seen: report(copied(seen)))

        async def stop(self) -> None:
            counting.count()
            self.shown = self.status()
            await super().stop()

    with capture_logs() as logs:
        async with Watched(scenario, written_settings(scenario)) as room:
            record = await ScenarioRun(scenario, room, room, room.start, observer=counting).play()
    report = await build_report(scenario, record, room, room, servers=ServerObservations(), clock_s=record.duration_s)
    left = tuple(sorted(task.get_name() for task in asyncio.all_tasks() - before))
    loud = tuple(str(line["event"]) for line in logs if line["log_level"] in {"warning", "error", "critical"})
    moved = Counter[str]()
    for line in logs:
        if line["event"] == "tiers_checked":
            moved.update({name: line[name] for name in ("queued", "compressed", "archived")})
    return Evening(scenario, record, report, record.duration_s, tuple(counting.living), loud, moved, room.shown, left)


@pytest.fixture(scope="module")
def evening() -> Evening:
    """Play the evening once for all tests."""
    scenario = whole_evening()
    assert written_settings(scenario).budget.max_input_tokens == MAX_INPUT_TOKENS
    return run_virtually(play(scenario))


def test_every_expectation_is_met(evening: Evening) -> None:
    """Every line is heard once under its speaker, only questions are answered, and every prompt is complete."""
    assert [f"{one.name}: {one.detail}" for one in evening.report.expectations if not one.passed] == []
    assert evening.report.passed
    assert evening.report.clock_s is not None
    assert evening.report.clock_s >= EVENING_S
    assert len(evening.report.compactions) > 35
    assert evening.record.left == "left"
    assert evening.report.dropped == {}


def test_what_was_said_first_is_still_known(evening: Evening) -> None:
    """The last questions are about the beginning and are answered from the summary or by memory search.

    Three hours and some forty compactions lie between.
    """
    first = " ".join(line.say for line in evening.scenario.says[:20])
    last = [each for each in evening.scenario.expect if isinstance(each, ExpectAnswer)][-4:]
    assert all(expected.all_of[0] in first for expected in last)
    replies = [reply.text for reply in evening.record.replies[-4:]]
    assert all(expected.all_of[0] in text for expected, text in zip(last, replies, strict=True)), replies


def test_folds_are_of_one_size_and_leave_the_window(evening: Evening) -> None:
    """Each compaction folds one batch and keeps the summary within its limit. Few turns are unfolded at any time."""
    folds = evening.record.compactions
    assert all(fold.new_cursor - fold.old_cursor == BATCH_SIZE for fold in folds)
    assert all(0 < len(fold.summary) <= MAX_SUMMARY_CHARS for fold in folds)
    assert evening.record.last_seq + 1 - folds[-1].new_cursor <= RECENT_WINDOW + 2 * BATCH_SIZE


def test_tiers_move_and_are_told(evening: Evening) -> None:
    """Segments of the beginning wait, are compressed and archived, and /status says so."""
    assert evening.moved["queued"] >= evening.moved["compressed"] > evening.moved["archived"] > 0
    assert f"{evening.moved['archived']} are in the archive" in evening.status


def test_nothing_grows_but_what_was_folded(evening: Evening) -> None:
    """Turns in memory are limited, sound is freed, and each compaction adds a similar number of objects."""
    for living in evening.living:
        # A running compaction and one that has just ended hold their batches.
        assert living[Turn] <= CAPACITY + 2 * BATCH_SIZE
        assert max(living[name] for name in PASSING) <= MOST_PASSING, {name: living[name] for name in PASSING}
        assert living[QueuedSpeech] <= REMEMBERED_PIECES + QUEUE_PIECES
    first, *_, last = evening.living
    segments = last[Segment] - first[Segment]
    assert segments > 10
    # The cache of words that were checked for the bot's name has its own limit.
    grown = sum((last - first).values()) - max(0, last[SpokenWords] - first[SpokenWords])
    assert grown < 150 * segments, (last - first).most_common(12)


def test_it_ends_in_order(evening: Evening) -> None:
    """At the end no task is left, and nothing was logged as a warning or an error."""
    assert evening.tasks_left == ()
    assert evening.logs == ()
