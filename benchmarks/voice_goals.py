"""The goals for hearing and answering in one table, from the kept results of several benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from benchmarks.reply.targets import LOST, UNLIKE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.report import Json

Results: TypeAlias = "Mapping[str, Mapping[str, Json]]"

# The kept result (docs/benchmarks) and the target's name in it, in the order of a sentence's way through the bot.
VOICE_GOALS = (
    ("receive.json", "receiving 100 speakers, share of a core"),
    ("receive.json", "frames lost of 100 speakers"),
    ("receive.json", "frames lost of 200 speakers in step"),
    ("receive.json", "whole bot, 100 speakers: loop lag P99, ms"),
    ("receive.json", "whole bot, 100 speakers: frames lost"),
    ("asr.json", "word error rate above faster-whisper's defaults, alone, points"),
    ("asr.json", "word error rate above faster-whisper's defaults, through Opus with loss, points"),
    ("asr.json", "recordings without any text, through Opus with loss"),
    ("asr.json", "CPU time beside the defaults, 6-9 s of speech"),
    ("asr-free-talk.json", "word error rate above faster-whisper's defaults, alone, points"),
    ("asr-free-talk.json", "word error rate above faster-whisper's defaults, through Opus with loss, points"),
    ("asr-free-talk.json", "recordings without any text, through Opus with loss"),
    ("asr-free-talk.json", "CPU time beside the defaults, 6-9 s of speech"),
    ("reply.json", LOST),
    ("reply.json", UNLIKE),
    ("endpoint.json", "pauses inside speech that are cut"),
    ("endpoint.json", "pauses inside free talk kept apart that are cut"),
    ("endpoint.json", "end of speech known after, P50 ms"),
    ("endpoint.json", "end of free talk kept apart known after, P50 ms"),
    ("reply.json", "pauses inside speech that are cut"),
    ("reply.json", "pauses that are cut in real time, somebody alone with the bot"),
    ("reply.json", "end of speech known after, P50 ms"),
    ("reply.json", "deciding with 99 hostile names and 400 words, CPU P95 ms"),
    ("reply.json", "end of speech to text, four speakers, P95 ms"),
    ("reply.json", "end of speech to first voiced sound, P50 ms"),
    ("reply.json", "end of speech to first voiced sound, P95 ms"),
    ("unasked.json", "spoken unasked in real talk among people, whole turns"),
    ("unasked.json", "spoken unasked in real talk among people, sentence by sentence"),
)
# Kept figures of the recordings that the policy of endpointing was fitted on (docs/decisions/0011-endpointing.md), so
# that they say less than those of what was kept apart.
TUNED_ON = frozenset(
    {
        ("endpoint.json", "pauses inside speech that are cut"),
        ("endpoint.json", "end of speech known after, P50 ms"),
        ("reply.json", "pauses inside speech that are cut"),
        ("reply.json", "pauses that are cut in real time, somebody alone with the bot"),
        ("reply.json", "end of speech known after, P50 ms"),
    }
)
# What stands beside the first row of its kind in a file: another file's target of what was kept apart.
BESIDE = {
    ("reply.json", "pauses inside speech that are cut"): (
        "endpoint.json",
        "pauses inside free talk kept apart that are cut",
    )
}


def said_as(file: str, target: Mapping[str, Json]) -> dict[str, Json]:
    """Return a kept target with 'tuned on' in its sample where it is of recordings that something was fitted on."""
    if (file, target.get("name")) not in TUNED_ON:
        return dict(target)
    return {**target, "sample": ", ".join(str(part) for part in (target.get("sample"), "tuned on") if part)}


def with_kept_apart(file: str, targets: Sequence[Mapping[str, Json]], results: Results) -> Iterator[dict[str, Json]]:
    """Yield the targets of a kept file as readers see them, with what was kept apart beside what was tuned on."""
    for target in targets:
        yield said_as(file, target)
        other, name = BESIDE.get((file, str(target.get("name"))), ("", ""))
        for apart in _named(results, other, name):
            yield {**apart, "name": f"{name} (`{other.removesuffix('.json')}`)"}


def voice_goals(results: Results) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield the kept result's file and the target, for each goal that a kept result has."""
    for file, name in VOICE_GOALS:
        for target in _named(results, file, name):
            yield file, said_as(file, target)


def _named(results: Results, file: str, name: str) -> Iterator[dict[str, Json]]:
    targets = results.get(file, {}).get("targets")
    for target in targets if isinstance(targets, list) else ():
        if isinstance(target, dict) and target.get("name") == name:
            yield target
