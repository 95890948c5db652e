"""The goals for hearing and answering in one table, from the kept results of several benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.report import Json

Results: TypeAlias = "Mapping[str, Mapping[str, Json]]"

# The kept result (docs/benchmarks) and the target's name in it, in the order of a sentence's way through the bot.
VOICE_GOALS = (
    ("receive.json", "receiving 100 speakers, share of a core"),
    ("receive.json", "frames lost of 100 speakers"),
    ("receive.json", "whole bot, 100 speakers: loop lag P99, ms"),
    ("receive.json", "whole bot, 100 speakers: frames lost"),
    ("asr.json", "word error rate above faster-whisper's defaults, alone, points"),
    ("asr.json", "word error rate above faster-whisper's defaults, through Opus with loss, points"),
    ("asr.json", "recordings without any text, through Opus with loss"),
    ("asr.json", "CPU time beside the defaults, 6-9 s of speech"),
    ("endpoint.json", "pauses inside speech that are cut"),
    ("endpoint.json", "end of speech known after, P50 ms"),
    ("endpoint.json", "pauses inside free talk kept apart that are cut"),
    ("endpoint.json", "end of free talk kept apart known after, P50 ms"),
    ("reply.json", "pauses inside speech that are cut"),
    ("reply.json", "end of speech known after, P50 ms"),
    ("reply.json", "deciding with 99 hostile names and 400 words, CPU P95 ms"),
    ("reply.json", "end of speech to text, four speakers, P95 ms"),
    ("reply.json", "end of speech to first voiced sound, P50 ms"),
    ("reply.json", "end of speech to first voiced sound, P95 ms"),
    ("unasked.json", "spoken unasked in real talk among people, whole turns"),
    ("unasked.json", "spoken unasked in real talk among people, sentence by sentence"),
)


def voice_goals(results: Results) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield the kept result's file and the target, for each goal that a kept result has."""
    for file, name in VOICE_GOALS:
        targets = results.get(file, {}).get("targets")
        for target in targets if isinstance(targets, list) else ():
            if isinstance(target, dict) and target.get("name") == name:
                yield file, target
