"""Finds out how a recogniser writes the bot's name: `python -m benchmarks.reply.make_misheard`.

Run it by hand; the results are stored in `talks/*.toml`. Voices of several accents call the bot, once clearly and once
with noise. The configured recogniser transcribes each call with and without the name in its glossary, like a room that
the bot has just joined and one whose names it knows. The program counts what the recogniser wrote in place of the name,
in lower case. The two sets have their own voices and sentences. Some results occur in both sets, as in reality.

Needs the same as `rehearsal.scenarios.make_audio`, and five minutes.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import structlog

from benchmarks.reply.dialogues import BOT, DialogueSet
from config.load import load
from rehearsal.people.clip import read_sound
from rehearsal.scenarios.make_audio import make
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.whisper import whisper_on_best_device
from voice.audio import LISTEN_RATE_HZ
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from voice.asr.port import Recogniser
    from voice.audio import Pcm

# Kokoro's voices. The first letter is the voice's native language, which gives its accent in English.
VOICES = {
    DialogueSet.TUNING: (
        "af_bella", "af_nicole", "am_adam", "am_onyx", "bf_alice", "bm_daniel", "ef_dora", "ff_siwis", "hf_alpha",
        "if_sara", "jf_alpha", "pf_dora", "zf_xiaobei",
    ),
    DialogueSet.HELD_OUT: (
        "af_sarah", "af_sky", "am_echo", "am_puck", "bf_lily", "bm_fable", "em_alex", "hm_omega", "im_nicola",
        "jm_kumo", "pm_alex", "zm_yunxi", "hf_beta",
    ),
}  # fmt: skip
SENTENCES = {
    DialogueSet.TUNING: (
        "Roomtone, what time is it?",
        "Hey Roomtone, who is coming tonight?",
        "What do you think, Roomtone?",
    ),
    DialogueSet.HELD_OUT: (
        "Roomtone, where did we stop?",
        "Okay Roomtone, can you help us?",
        "Is that right, Roomtone?",
    ),
}
# About as loud as a hair dryer in the next room.
NOISE_SHARE = 0.12
_RATE_HZ = 48_000
_WORD = re.compile(r"[\w'’-]+")


async def main() -> None:
    """Print as JSON what the recogniser wrote in place of the name, and how often."""
    # Log to stderr, so that stdout contains only the result.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    settings = load()
    counted: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="roomtone-names-") as folder:
        async with QueuedRecogniser(whisper_on_best_device(settings.asr).load) as recogniser:
            for part in DialogueSet:
                clips = await asyncio.to_thread(_spoken, part, Path(folder) / part.value)
                counted[part.value] = await _written(clips, recogniser)
    told = {part: dict(written.most_common()) for part, written in counted.items()}
    sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def _spoken(part: DialogueSet, folder: Path) -> list[tuple[str, Path]]:
    """Let every voice speak every sentence, and return each sentence with its audio file. Blocks."""
    folder.mkdir()
    lines = [(voice, text) for voice in VOICES[part] for text in SENTENCES[part]]
    people = [f'[people.{voice}]\nname = "{voice}"\nvoice = "{voice}"\n' for voice in VOICES[part]]
    steps = [
        f'[[steps]]\nwho = "{voice}"\nsay = {json.dumps(text)}\naudio = "{number}.ogg"\n'
        for number, (voice, text) in enumerate(lines)
    ]
    scenario = folder / "scenario.toml"
    scenario.write_text("\n".join([*people, *steps]), "utf-8")
    workshop = folder / "workshop"
    workshop.mkdir()
    make([scenario], workshop)
    return [(text, folder / f"{number}.ogg") for number, (_, text) in enumerate(lines)]


async def _written(clips: Sequence[tuple[str, Path]], recogniser: Recogniser) -> Counter[str]:
    counted: Counter[str] = Counter()
    for sentence, clip in clips:
        for pcm in _heard_ways(clip):
            for glossary in ((), (BOT,)):
                heard = await recogniser.recognise(pcm, language="en", glossary=glossary)
                name = name_in(heard.text, sentence)
                counted[name.casefold() or "(not understood)"] += 1
    return counted


def _heard_ways(clip: Path) -> Iterator[Pcm]:
    """Yield a clip unchanged, and with noise."""
    pcm = resample(read_sound(clip), _RATE_HZ, LISTEN_RATE_HZ)
    yield pcm
    noise = np.random.default_rng(len(pcm)).normal(0, np.abs(pcm).max() * NOISE_SHARE / 3, len(pcm))
    yield np.clip(pcm + noise, -32_768, 32_767).astype(np.int16)


def name_in(text: str, sentence: str) -> str:
    """Return what `text` has in place of the name in `sentence`, or an empty string if the other words differ."""
    before, _, after = sentence.partition(BOT)
    first, last = _words(before), _words(after)
    found = list(_WORD.finditer(text))
    words = [each.group().casefold() for each in found]
    end = len(words) - len(last)
    if words[: len(first)] != first or words[end:] != last or end <= len(first):
        return ""
    return text[found[len(first)].start() : found[end - 1].end()]


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


if __name__ == "__main__":
    asyncio.run(main())
