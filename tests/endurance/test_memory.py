"""What once held more and more memory in a live room does not: counted in bytes, on no clock or the test's.

The allocator's pages are left out, because they depend on what else the process did.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bot.models.voices import find_voice, open_voice
from bot.store.database import open_database
from bot.store.turns import SqlTurnStore
from compaction.sentence_cache import clear_sentence_caches
from tests.endurance.malloc import allocated_mb
from tests.endurance.outages import TURN_S, open_session, talk
from tests.fakes.clock import FakeClock
from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ
from voice.speaking import embedded, piper
from voice.speaking.playback import REMEMBERED_PIECES, Playback
from voice.speaking.port import Speech

MODELS = Path(__file__).parents[2] / "data" / "models"
needs_glibc = pytest.mark.skipif(allocated_mb() is None, reason="only glibc tells what malloc has handed out")
# 40 words.
LONG_SENTENCE = "Then we went on along the river and sat down under a tree and looked at the water for a while, " * 2
# Recognises silence of ever new lengths in a process that began as the bot does, and tells what malloc handed out.
RECOGNISE = """
import bot.__main__
import sys
from pathlib import Path
import numpy as np
from tests.endurance.malloc import allocated_mb
from voice.asr.port import RecognitionRequest
from voice.asr.settings import AsrSettings
from voice.asr.whisper import WhisperEngine

engine = WhisperEngine(Path(sys.argv[1]), AsrSettings())
def recognise(tenths):
    for each in tenths:
        engine.recognise(RecognitionRequest(np.zeros(each * 1600, np.int16), language="en"))
    return allocated_mb()
before = recognise(range(30, 72, 2))
print(recognise(range(73, 90, 2)) - before)
"""


@pytest.fixture
def traced() -> Iterator[None]:
    """Count the bytes of Python's objects and of numpy's arrays."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def _traced_kb() -> float:
    # Bounded, and so full after some hours whatever else is kept.
    clear_sentence_caches()
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1024


@pytest.mark.slow
@needs_glibc
def test_new_lengths_of_speech_take_no_memory(whisper_model_dir: Path) -> None:
    """Nine lengths that the recogniser has not met take a fifth at most of the 12 MB of their compiled code. Some
    processors take 30 MB for the first ones, which is all.
    """
    ran = subprocess.run(
        [sys.executable, "-c", RECOGNISE, str(whisper_model_dir)],
        cwd=MODELS.parents[1],
        check=True,
        capture_output=True,
        text=True,
    )
    assert float(ran.stdout) < 2.5


@pytest.mark.slow
@needs_glibc
@pytest.mark.parametrize("name", ["hibari", "joe"])
async def test_a_long_sentence_gives_its_memory_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a sentence of 40 words the voice holds 60 MB more at most, and not 190."""
    # A machine that is busy with other tests needs longer.
    monkeypatch.setattr(embedded, "SENTENCE_TIMEOUT_S", 120.0)
    known = find_voice(name)
    assert known is not None
    async with open_voice(known, MODELS) as voice:
        before = allocated_mb()
        await voice.synthesize(LONG_SENTENCE)
        after = allocated_mb()
    assert before is not None
    assert after is not None
    assert after - before < 60.0


@needs_glibc
def test_a_thousand_sentences_set_the_voice_once() -> None:
    """espeak keeps 1.3 kB each time that its voice is set: 1.3 MB for these."""
    phonemes = piper.phonemizer("en-us")
    phonemes("Yes.")
    before = allocated_mb()
    for _ in range(1000):
        phonemes("We sat down under a tree.")
    after = allocated_mb()
    assert before is not None
    assert after is not None
    assert after - before < 0.5


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(("frames", "words"), [(101, "piece {}"), (10, "piece")], ids=["played", "stopped"])
async def test_pieces_that_were_played_or_stopped_keep_no_sound(frames: int, words: str) -> None:
    """Of remembered pieces of two seconds, which do not end with a whole frame, no sound is kept. What was heard of
    each is still told, and that it may be an echo.
    """
    now = 0.0
    playback = Playback(monotonic=lambda: now)
    sound = np.full(100 * DISCORD_FRAME_SAMPLES + 7, 1000, np.int16)
    before = _traced_kb()
    for number in range(REMEMBERED_PIECES):
        done = await playback.queue(Speech(f"piece {number}", sound.copy(), DISCORD_RATE_HZ))
        for _ in range(frames):
            assert playback.next_frame() is not None
            now += 0.02
        playback.stop()
        heard = await done
        assert (heard.played_s, heard.duration_s) == pytest.approx((frames * 0.02, 2.0), abs=0.021)
        assert playback.words_between(now + 0.9, now + 0.9) == words.format(number)
        assert playback.words_between(now + 1.1, now + 1.1) == ""
        now += 10.0
    assert _traced_kb() - before < 0.1 * REMEMBERED_PIECES * sound.nbytes / 1024


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
async def test_a_session_keeps_only_facts(tmp_path: Path) -> None:
    """Of a turn that is one fact, a session keeps the fact and which facts are about what, half a kilobyte, and
    nothing that grows faster.
    """
    clock = FakeClock()
    kept_kb = []
    async with (
        open_database(tmp_path / "roomtone.db") as database,
        open_session(SqlTurnStore(database, clock), clock) as memory,
    ):
        # The first turns fill caches too.
        for _ in range(3):
            assert await talk(memory, clock, 150 * TURN_S) == 0
            await memory.settle()
            kept_kb.append(_traced_kb())
    assert (kept_kb[2] - kept_kb[1]) / 150 < 0.7
