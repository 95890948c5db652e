"""Every way in which a fault can be heard too late, lost or doubled misses a target, and the run fails for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster_faults.__main__ import tell
from tests.cluster_faults.faults import FAULTS
from tests.cluster_faults.report import faults_report
from tests.cluster_faults.run import RunOptions, Seen
from tests.cluster_faults.trial import Outcome, RoomOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOM = RoomOutcome(
    room=0, heard_again_s=0.3, hears_after_s=0.2, connected_s=0.2, missing_s=0, connections=1, after_mend=1
)
GOOD = Outcome(
    rooms=(ROOM,),
    connections_elsewhere=0,
    absent=(),
    sentences=12,
    unjudged=0,
    changed=0,
    numbers=0,
    lost=(),
    cut=("room 0, take 3",),
    twice=(),
    questions=2,
    answers=(1, 1, 1, 1),
    unasked=0,
    at_once=0,
    silent_rooms=0,
)


def judged(outcomes: Mapping[str, list[Outcome]], *, times: int = 1) -> tuple[int, list[str]]:
    """Return the exit status of a run that saw this, and the sentences about what was missed."""
    options = RunOptions(3, 2, away_s=60, times=times, at_once=1, faults=tuple(outcomes))
    seen = Seen({}, (), {name: found for name, found in outcomes.items() if found})
    said: list[str] = []
    status = tell(faults_report(seen, options), said.append)
    return status, [line for line in said if line.startswith("Not met: ")]


def changed(**changes: Any) -> Outcome:
    """Return a good outcome with other figures, of its room or of the whole."""
    of_room = {name: value for name, value in changes.items() if name in RoomOutcome.__dataclass_fields__}
    others = {name: value for name, value in changes.items() if name not in of_room}
    return replace(GOOD, rooms=(replace(ROOM, **of_room),), **others)


def test_a_room_that_hears_again_and_answers_once_meets_every_target() -> None:
    """A sentence that the fault fell into is no loss of the room."""
    assert judged({"process": [GOOD]}) == (0, [])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"hears_after_s": 15.2}, "hears again after, s: 15.2, and should be <= 15 s"),
        ({"hears_after_s": None}, "hears again after, s: a room never did"),
        ({"absent": (0,)}, "rooms without the bot afterwards: 1"),
        ({"connections": 3}, "voice connections more or fewer than it explains: 2"),
        ({"connections": 0}, "voice connections more or fewer than it explains: 1"),
        ({"connections_elsewhere": 1}, "voice connections more or fewer than it explains: 1"),
        ({"answers": (1, 1, 0, 0)}, "did not hear exactly one answer: 2"),
        ({"answers": (1, 2, 1, 1)}, "did not hear exactly one answer: 1"),
        ({"answers": (), "questions": 0}, "did not hear exactly one answer: not measured"),
        ({"unasked": 1}, "speech of the bot that nobody asked for, or at once: 1"),
        ({"at_once": 1}, "speech of the bot that nobody asked for, or at once: 1"),
        ({"changed": 1}, "stored turns that are gone or other: 1"),
        ({"lost": ("room 0, take 4",)}, "sentences not stored as a whole, although their room heard: 1"),
        ({"twice": ("room 0, take 4",)}, "turns doubled, or numbers missing: 1"),
        ({"numbers": 1}, "turns doubled, or numbers missing: 1"),
        ({"silent_rooms": 1}, "rooms whose /status did not say so: 1"),
    ],
)
def test_each_missed_target_fails_the_run_with_its_name(changes: Mapping[str, object], sentence: str) -> None:
    """The status is 1, and one sentence tells which fault, what was seen and what it should be."""
    status, [missed] = judged({"calm": [calm()], "process": [changed(**changes)]})
    assert status == 1
    assert missed.startswith("Not met: a bot's process is killed: ")
    assert sentence in missed


def calm(**changes: Any) -> Outcome:
    """Return what is seen when nothing breaks: no voice connection is made anew."""
    return changed(**{"connections": 0, "after_mend": 0, **changes})


def test_where_nothing_may_be_missed_a_gap_fails_the_run() -> None:
    """How soon a room hears again is no excuse there."""
    status, [missed] = judged({"database": [calm(missing_s=0.9)]})
    assert (status, "PostgreSQL is away: speech missing in a room, s: 0.9" in missed) == (1, True)
    assert judged({"database": [calm(hears_after_s=9.0)]}) == (0, [])


@pytest.mark.parametrize("name", FAULTS)
def test_two_processes_that_take_a_room_from_each_other_fail_the_run(name: str) -> None:
    """Whatever broke: the second connection comes after what it explains, and so do all others."""
    status, missed = judged({name: [changed(connections=6, after_mend=5)]})
    assert status == 1
    assert any("voice connections" in sentence for sentence in missed)


def test_a_fault_that_was_not_tried_has_proved_nothing() -> None:
    """A run that broke off, or that found nothing to break, says which faults it lacks."""
    status, missed = judged({"process": [GOOD], "node": []}, times=2)
    assert status == 1
    assert [sentence.split(" (")[0] for sentence in missed] == [
        "Not met: a bot's process is killed: times that it was tried: 1, and should be 2",
        "Not met: a node is lost: times that it was tried: 0, and should be 2",
    ]
