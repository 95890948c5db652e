"""The figures of hearing and answering on read recordings beside those on free talk, from several kept results.

The goals are in `voice_goals`. This table has what they compare: each recogniser's errors and processor time, what was
never heard, and what was not measured. It has no delays of the recognisers, because the run over the free talk shared
its machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from benchmarks.figures import cut_sample, number_at
from bot.dropped_sounds import OVERLOADED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.report import Json

    Results: TypeAlias = Mapping[str, Mapping[str, Json]]
    Cell: TypeAlias = Callable[[Json], str]

HEAD = ("what", "who", "read recordings of people", "free talk of synthetic voices, kept apart")
CROWD_HEAD = (
    "whole bot, all talk at once, with pauses",
    "share of a core",
    "of it the event loop",
    "loop lag P99, ms",
    "frames lost",
    "recogniser busy",
    "utterances recognised",
    "given up",
    "interims dropped",
)
# The kept results of the recogniser's benchmark, and the sets of the endpoint benchmark: read speech, on which the
# policy was fitted, and free talk.
RECOGNISED = ("asr.json", "asr-free-talk.json")
TUNED_ON = "speech"
SETS = (TUNED_ON, "free talk kept apart")
CROWDS = ("50 speakers", "100 speakers")
OURS = "Roomtone"
# The names of the others in the results, and those that readers see.
OTHERS = {
    "faster-whisper": "faster-whisper, its defaults",
    "faster-whisper, batched": "faster-whisper, batched",
    "whisper.cpp": "whisper.cpp",
}
PARTS = {"alone": "alone", "opus": "through Opus with 5 % of the packets lost"}
NOT_MEASURED = "not measured"


def speech_rows(results: Results) -> Iterator[tuple[str, ...]]:
    """Yield the rows of `HEAD`, each value with its sample; none without a kept result of a recogniser."""
    if not any(file in results for file in RECOGNISED):
        return
    for part, how in PARTS.items():
        for what, told in _of_words().items():
            yield from _of_everybody(results, part, f"{what}, {how}", told)
        yield from _of_everybody(results, part, f"CPU time of a recording, {how}", _cpu)
        yield from _of_everybody(results, part, f"texts dropped as unsure, {how}", _dropped, others=False)
    reply, endpoint = _ours(results, "reply.json"), _ours(results, "endpoint.json")
    heard = _entry(_entry(reply, "answers"), "heard")
    for what, told in _of_words().items():
        yield f"{what}, through Discord's whole path without loss", OURS, told(heard), NOT_MEASURED
    yield "answers missing, through the local Discord's whole path", OURS, _unanswered(reply), NOT_MEASURED
    yield "pauses inside speech that are cut", OURS, *(_cut(endpoint, name) for name in SETS)
    yield "end of speech known after, P50, on the sound's own clock", OURS, *(_known(endpoint, name) for name in SETS)
    yield "end of speech to first voiced sound, P50 / P95", OURS, _first_sound(reply), NOT_MEASURED


def crowd_rows(results: Results) -> Iterator[tuple[str, ...]]:
    """Yield the rows of `CROWD_HEAD`: what the whole bot takes while so many people talk and it recognises them.

    A crowd beside which the recogniser did nothing that is known is left out, as results were before it was counted.
    """
    found = _entry(_ours(results, "receive.json"), "whole bot")
    for name in CROWDS:
        crowd = _entry(found, name)
        if number_at(crowd, "recogniser", "busy") is not None:
            yield name, *_crowd_cells(crowd)


def _crowd_cells(crowd: Json) -> Iterator[str]:
    loop = number_at(crowd, "threads", "MainThread")
    lag_ms = number_at(crowd, "loop_lag", "p99_ms")
    yield f"{number_at(crowd, 'core') or 0:.0%}"
    yield NOT_MEASURED if loop is None else f"{loop:.0%}"
    yield NOT_MEASURED if lag_ms is None else f"{lag_ms:.1f}"
    yield f"{number_at(crowd, 'lost') or 0:,.0f} of {number_at(crowd, 'sent') or 0:,.0f}"
    yield f"{number_at(crowd, 'recogniser', 'busy') or 0:.0%}"
    for path in (("texts",), ("dropped", OVERLOADED), ("interim_dropped",)):
        yield f"{number_at(crowd, 'recogniser', *path) or 0:,.0f}"


def _of_everybody(
    results: Results, part: str, what: str, told: Cell, *, others: bool = True
) -> Iterator[tuple[str, ...]]:
    """Yield one row for Roomtone, and one for each other recogniser that one of the results has."""
    yield what, OURS, *(told(_entry(_ours(results, file), part)) for file in RECOGNISED)
    for name, shown in OTHERS.items() if others else ():
        found = [_entry(_entry(results.get(file, {}).get("peers"), name), part) for file in RECOGNISED]
        if any(cell != NOT_MEASURED for cell in map(told, found)):
            yield what, shown, *map(told, found)


def _of_words() -> dict[str, Cell]:
    """Return what is told of a recogniser's texts (`benchmarks.heard_words`)."""
    return {
        "words misheard": _misheard,
        "recordings without any text": _counted("without_text"),
        "texts unlike what was said, gibberish among them": _counted("unlike_what_was_said"),
    }


def _misheard(found: Json) -> str:
    rate, words, recordings = (number_at(found, each) for each in ("word_error_rate", "words", "recordings"))
    if rate is None or words is None or recordings is None:
        return NOT_MEASURED
    return f"{rate:.1%} of {words:,.0f} words in {recordings:.0f}"


def _counted(name: str) -> Cell:
    def told(found: Json) -> str:
        count, recordings = number_at(found, name), number_at(found, "recordings")
        return NOT_MEASURED if count is None or recordings is None else f"{count:.0f} of {recordings:.0f}"

    return told


def _cpu(found: Json) -> str:
    cpu_ms, audio_s, recordings = (number_at(found, each) for each in ("cpu_ms_mean", "audio_s_mean", "recordings"))
    if cpu_ms is None or audio_s is None or recordings is None:
        return NOT_MEASURED
    return f"{cpu_ms:,.0f} ms for {audio_s:.1f} s, mean of {recordings:.0f}"


def _dropped(found: Json) -> str:
    recordings, dropped = number_at(found, "recordings"), _entry(found, "dropped_by_guards")
    if recordings is None or not isinstance(dropped, dict):
        return NOT_MEASURED
    count = sum(each for each in dropped.values() if isinstance(each, int))
    return f"{count} in {recordings:.0f}"


def _unanswered(reply: Json) -> str:
    missing, asked = number_at(reply, "answers", "unanswered"), number_at(reply, "answers", "recordings")
    return NOT_MEASURED if missing is None or asked is None else f"{missing:.0f} of {asked:.0f}"


def _cut(endpoint: Json, name: str) -> str:
    share, sample = number_at(endpoint, name, "policy", "cut_share"), cut_sample(endpoint, name, "policy")
    return NOT_MEASURED if share is None or not sample else f"{share:.1%}, {sample}{_tuned_on(name)}"


def _known(endpoint: Json, name: str) -> str:
    at = (name, "policy", "end_known_after_ms")
    p50_ms, count = number_at(endpoint, *at, "p50"), number_at(endpoint, *at, "count")
    return NOT_MEASURED if p50_ms is None or count is None else f"{p50_ms:.0f} ms, {count:.0f} ends{_tuned_on(name)}"


def _tuned_on(name: str) -> str:
    return ", tuned on" if name == TUNED_ON else ""


def _first_sound(reply: Json) -> str:
    p50_ms, p95_ms, count = (number_at(reply, "answers", "total_ms", each) for each in ("p50", "p95", "count"))
    if p50_ms is None or p95_ms is None or count is None:
        return NOT_MEASURED
    return f"{p50_ms:,.0f} / {p95_ms:,.0f} ms, {count:.0f} recordings"


def _ours(results: Results, file: str) -> Json:
    return results.get(file, {}).get("ours")


def _entry(found: Json, name: str) -> Json:
    return found.get(name) if isinstance(found, dict) else None
