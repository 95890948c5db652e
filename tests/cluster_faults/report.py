"""The report of a run: what was seen of each fault, beside what it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cluster.tables import seen_times
from benchmarks.machine import describe_machine
from benchmarks.report import BenchmarkReport, Target, at_most

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.report import Json
    from tests.cluster_faults.run import RunOptions, Seen
    from tests.cluster_faults.trial import Outcome

# What breaks, and within how many seconds all of its rooms hear again; None: nothing may be missed.
GOALS: dict[str, tuple[str, float | None]] = {
    "calm": ("nothing breaks", None),
    "room": ("a room's process is killed", 1.0),
    "node": ("a node is killed", 6.0),
    "frozen": ("a node hangs for 15 s", 6.0),
    "drained": ("a node leaves in order", 6.0),
    "pool": ("the recogniser pool is killed", None),
    "database": ("PostgreSQL is away", None),
    "gateway": ("the gateway process is killed", None),
}
_POOL_FACTS = {
    "rooms_that_did_not_say_so": "rooms whose /status did not say so",
    "rooms_that_did_not_hear_by_themselves": "rooms that did not hear by themselves meanwhile",
    "rooms_that_did_not_use_it": "rooms that did not use it before",
    "rooms_that_did_not_use_it_again": "rooms that did not use it again",
}
# A pause within a sentence may be left out, and marks have tenths of seconds.
NO_GAP_S = 0.6


def faults_report(seen: Seen, options: RunOptions) -> BenchmarkReport:
    """Return the report of a run."""
    targets: list[Target] = []
    for name, outcomes in seen.outcomes.items():
        targets += _targets(name, outcomes)
    return BenchmarkReport(
        bench="cluster-faults",
        machine=describe_machine(),
        ours={
            "cluster": {
                "rooms": options.rooms,
                "nodes": options.nodes,
                "rooms_that_share_a_process": options.each,
                "processes_that_wait": 1 + (options.nodes - 1) * options.waiting,
                "rooms_by_node": dict(seen.spread),
                "memory_mb_of_room_processes": [round(each.resident_mb) for each in seen.processes],
                "own_memory_mb_of_room_processes": [round(each.own_mb) for each in seen.processes],
            },
            **{name: _figures(outcomes) for name, outcomes in seen.outcomes.items()},
        },
        peers={},
        targets=tuple(targets),
        remarks=(*_remarks(options), *((seen.broken_off,) if seen.broken_off else ())),
    )


def _remarks(options: RunOptions) -> Iterable[str]:
    yield (
        f"{options.rooms} rooms and {options.nodes} nodes are processes on one machine, on its loopback. Two people in "
        f"each room speak recordings in turn, in at most {options.at_once} rooms at once besides the up to four that "
        "are looked at, where somebody speaks all the time."
    )
    yield (
        "The recogniser is a script: it says which part of which recording it was given, so the store tells exactly "
        "what was heard. Voice activity, end of turn, encryption, UDP, PostgreSQL and all processes are real; the "
        "language model and the voice are local servers."
    )
    yield (
        "A machine that is too busy loses sound by itself: what is lost while nothing breaks says how much. Sentences "
        "that were not spoken in time are not judged."
    )
    yield (
        "A room hears again (hears_after_s) when its voice connection began (voice_connected_s), or later, as long as "
        "speech was sent that is not stored. heard_again_s is when the first speech was sent that is stored; where "
        "nobody spoke all the time, that is later. Where a node leaves in order, a room hears until it is handed over, "
        "and hears_after_s counts from the end of its former voice connection."
    )


def _targets(name: str, outcomes: Sequence[Outcome]) -> Iterable[Target]:
    what, within_s = GOALS[name]
    rooms = [room for outcome in outcomes for room in outcome.rooms]
    spoken = sum(outcome.sentences for outcome in outcomes)
    sample = f"{seen_times(len(outcomes))}, {len(rooms)} rooms, {spoken} sentences"
    if within_s is None:
        missing = max((room.missing_s for room in rooms), default=None)
        yield at_most(f"{what}: speech missing in a room, s", "no gap", missing, NO_GAP_S, sample)
    else:
        times = [room.hears_after_s for room in rooms]
        worst = None if not times or None in times else max(time for time in times if time is not None)
        if times and worst is None:
            yield Target(f"{what}: hears again after, s", f"<= {within_s:g} s", "a room never did", met=False)
        else:
            yield at_most(f"{what}: hears again after, s", f"<= {within_s:g} s", worst, within_s, sample)
    voices = max(outcome.most_voices for outcome in outcomes)
    yield at_most(f"{what}: voices of the bot in a channel", "<= 1", voices, 1, sample)
    told_twice = sum(outcome.overlaps + sum(max(0, count - 1) for count in outcome.answers) for outcome in outcomes)
    questions = sum(outcome.questions for outcome in outcomes)
    yield at_most(
        f"{what}: answers that somebody heard twice",
        "0",
        told_twice,
        0,
        f"{seen_times(len(outcomes))}, {questions} questions",
    )
    gone = sum(outcome.changed for outcome in outcomes)
    yield at_most(f"{what}: stored turns that are gone or other", "0", gone, 0, sample)
    lost = sum(len(outcome.lost) for outcome in outcomes)
    yield at_most(f"{what}: sentences not stored as a whole, although their room heard", "none", lost, 0, sample)
    doubled = sum(len(outcome.twice) + outcome.numbers for outcome in outcomes)
    yield at_most(f"{what}: turns doubled, or numbers missing", "0", doubled, 0, sample)
    if name == "pool":
        for fact, told in _POOL_FACTS.items():
            most = max(_number(outcome.facts[fact]) for outcome in outcomes)
            yield at_most(f"{what}: {told}", "0", most, 0, sample)


def _figures(outcomes: Sequence[Outcome]) -> list[Json]:
    return [
        {
            "hears_after_s": [_rounded(room.hears_after_s) for room in outcome.rooms],
            "heard_again_s": [_rounded(room.heard_again_s) for room in outcome.rooms],
            "voice_connected_s": [_rounded(room.connected_s) for room in outcome.rooms],
            "missing_s": [_rounded(room.missing_s) for room in outcome.rooms],
            "voice_connections": [room.connections for room in outcome.rooms],
            "most_voices": outcome.most_voices,
            "voice_connections_after_it_was_over": outcome.after_mended,
            "sentences": outcome.sentences,
            "sentences_not_spoken_in_time": outcome.unjudged,
            "turns_changed": outcome.changed,
            "turn_numbers_wrong": outcome.numbers,
            "sentences_lost": list(outcome.lost),
            "sentences_cut": list(outcome.cut),
            "sentences_twice": list(outcome.twice),
            "questions": outcome.questions,
            "answers_heard": list(outcome.answers),
            "answers_at_once": outcome.overlaps,
            **outcome.facts,
        }
        for outcome in outcomes
    ]


def _number(fact: Json) -> float:
    assert isinstance(fact, int | float), "a count"
    return fact


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)
