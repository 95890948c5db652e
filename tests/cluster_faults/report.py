"""The report of a run: what was seen of each fault, beside what it should be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.report import BenchmarkReport, Json, Target, at_least, at_most, describe_machine
from tests.cluster_faults.run import RunOptions, Seen
from tests.cluster_faults.trial import RoomOutcome, TrialOutcome


@dataclass(frozen=True, slots=True)
class Goal:
    """`what` breaks. `within_s`: within how many seconds all of its rooms hear again; None: nothing may be missed.
    `connections`: how often the bot's voice connection is made anew in each of its rooms; more of them, before it is
    mended or afterwards, are those of processes that take the room from each other.
    """

    what: str
    within_s: float | None
    connections: int


GOALS: dict[str, Goal] = {
    "calm": Goal("nothing breaks", None, 0),
    "process": Goal("a bot's process is killed", 15.0, 1),
    "node": Goal("a node is lost", 30.0, 1),
    "frozen": Goal("a node hangs", 30.0, 1),
    "drained": Goal("a node is drained", 15.0, 1),
    "recogniser": Goal("the recogniser is away", None, 0),
    "database": Goal("PostgreSQL is away", None, 0),
}
HEARS_AGAIN = "hears again after, s"
# A pause within a sentence may be left out, and marks have tenths of seconds.
NO_GAP_S = 0.6


def faults_report(seen: Seen, options: RunOptions) -> BenchmarkReport:
    """Return the report of a run. Every fault that was asked for is judged, also if it was not tried."""
    targets: list[Target] = []
    for name in options.faults:
        targets += _targets(GOALS[name], seen.outcomes.get(name, ()), options.times)
    return BenchmarkReport(
        bench="cluster-faults",
        machine=describe_machine(),
        ours={
            "cluster": {
                "rooms": options.rooms,
                "nodes": options.nodes,
                "rooms_by_node": dict(seen.spread),
                "memory_mb_of_bots": [round(each.memory_mb) for each in seen.processes],
            },
            **{name: _figures(outcomes) for name, outcomes in seen.outcomes.items()},
        },
        targets=tuple(targets),
        remarks=(*_remarks(options), *((seen.without_bot,) if seen.without_bot else ())),
    )


def missed(report: BenchmarkReport) -> tuple[str, ...]:
    """Return a sentence for each target that was not met, or not measured."""
    return tuple(
        f"Not met: {target.name}: {target.value}, and should be {target.goal} ({target.sample})."
        for target in report.targets
        if not target.met
    )


def _remarks(options: RunOptions) -> Iterable[str]:
    yield (
        f"{options.rooms} rooms on {options.nodes} bots, each kept by Ray on a node of its own: processes of one "
        "machine, "
        "on its loopback, in a network of their own. Two people in each room speak recordings in turn, in at most "
        f"{options.at_once} rooms at once besides the two that are looked at, where somebody speaks all the time."
    )
    yield (
        "The recogniser is a script: it says which part of which recording it was given, so the store tells exactly "
        "what was heard. While it is away, whisper-base of each bot hears; then the times of the stored turns tell "
        "how much of a sentence was heard, in two rooms. Everything else of the bots, Ray and PostgreSQL are real; the "
        "language model and the voice are local servers."
    )
    yield (
        "A machine that is too busy loses sound by itself: what is lost while nothing breaks says how much. Sentences "
        "that were not spoken in time are not judged."
    )
    yield (
        "A room hears again (hears_after_s) when its voice connection began (voice_connected_s), or later, as long as "
        "speech was sent that is not stored. heard_again_s is when the first speech was sent that is stored; where "
        "nobody spoke all the time, that is later. Where a node is drained, a room hears until it is handed over, "
        "and hears_after_s counts from the end of its former voice connection (moved_s)."
    )


def _targets(goal: Goal, outcomes: Sequence[TrialOutcome], times: int) -> Iterable[Target]:
    if len(outcomes) < times:
        yield at_least(f"{goal.what}: times that it was tried", str(times), len(outcomes), times)
    if not outcomes:
        return
    rooms = [room for outcome in outcomes for room in outcome.rooms]
    spoken = sum(outcome.sentences for outcome in outcomes)
    sample = f"{seen_times(len(outcomes))}, {len(rooms)} rooms, {spoken} sentences"
    yield _hearing(goal, rooms, sample)
    gone = sum(outcome.changed + outcome.numbers + len(outcome.lost) + len(outcome.twice) for outcome in outcomes)
    yield at_most(f"{goal.what}: turns or sentences gone, cut or doubled", "0", gone, 0, sample)
    yield _answers(goal, outcomes)
    odd = sum(
        len(outcome.absent) + unexplained_connections(goal, outcome) + outcome.silent_rooms for outcome in outcomes
    )
    yield at_most(f"{goal.what}: rooms left without the bot, needless connections, silent /status", "0", odd, 0, sample)


def seen_times(count: int) -> str:
    """Return how often something was tried, as a sample says it: once is an example and no rate."""
    return "seen once" if count == 1 else f"seen {count} times"


def _hearing(goal: Goal, rooms: Sequence[RoomOutcome], sample: str) -> Target:
    if goal.within_s is None:
        missing = max((room.missing_s for room in rooms), default=None)
        return at_most(f"{goal.what}: speech missing in a room, s", "no gap", missing, NO_GAP_S, sample)
    name, told = f"{goal.what}: {HEARS_AGAIN}", f"<= {goal.within_s:g} s"
    times = [room.hears_after_s for room in rooms]
    if None in times:
        return Target(name, told, "a room never did", met=False, sample=sample)
    worst = max((time for time in times if time is not None), default=None)
    return at_most(name, told, worst, goal.within_s, sample)


def unexplained_connections(goal: Goal, outcome: TrialOutcome) -> int:
    """Return by how many the bot's voice connections differ from those that a fault explains, in all rooms."""
    return outcome.connections_elsewhere + sum(abs(room.connections - goal.connections) for room in outcome.rooms)


def _answers(goal: Goal, outcomes: Sequence[TrialOutcome]) -> Target:
    questions = sum(outcome.questions for outcome in outcomes)
    counts = [count for outcome in outcomes for count in outcome.answers]
    sample = f"{seen_times(len(outcomes))}, {questions} questions, heard by both people in the room"
    besides = sum(outcome.unasked + outcome.at_once for outcome in outcomes)
    wrong = sum(count != 1 for count in counts) + besides if counts or besides else None
    return at_most(f"{goal.what}: questions without exactly one answer, speech unasked", "0", wrong, 0, sample)


def _figures(outcomes: Sequence[TrialOutcome]) -> list[Json]:
    return [
        {
            "hears_after_s": [_rounded(room.hears_after_s) for room in outcome.rooms],
            "heard_again_s": [_rounded(room.heard_again_s) for room in outcome.rooms],
            "voice_connected_s": [_rounded(room.connected_s) for room in outcome.rooms],
            "moved_s": [_rounded(room.moved_s) for room in outcome.rooms],
            "missing_s": [_rounded(room.missing_s) for room in outcome.rooms],
            "voice_connections": [room.connections for room in outcome.rooms],
            "voice_connections_after_the_mend": [room.after_mend for room in outcome.rooms],
            "voice_connections_in_other_rooms": outcome.connections_elsewhere,
            "rooms_without_the_bot": list(outcome.absent),
            "sentences": outcome.sentences,
            "sentences_not_spoken_in_time": outcome.unjudged,
            "turns_changed": outcome.changed,
            "turn_numbers_wrong": outcome.numbers,
            "sentences_lost": list(outcome.lost),
            "sentences_cut": list(outcome.cut),
            "sentences_twice": list(outcome.twice),
            "questions": outcome.questions,
            "answers_heard": list(outcome.answers),
            "speech_unasked": outcome.unasked,
            "speech_at_once": outcome.at_once,
            "rooms_whose_status_was_silent": outcome.silent_rooms,
        }
        for outcome in outcomes
    ]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)
