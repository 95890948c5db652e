"""Other processes decode and read pictures. One that hangs or dies is replaced, and costs its picture alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.patience import PATIENCE_S
from tests.voice.screen.screens import HUD, PATIENT_READER, jpeg, own_frame, screen
from voice.screen.frame import LUMA_HEIGHT, LUMA_WIDTH, FrameRefusedError
from voice.screen.frame_decoder import FrameDecoder
from voice.screen.frame_diff import Box
from voice.screen.ocr import READ_TIMEOUT_S, OcrReader
from voice.screen.port import NoPictureError, VisionError, VisionRequest, VisionSource
from voice.screen.worker_process import MISSING

PICTURE = jpeg(screen())
LOOK = VisionRequest(PICTURE)

# A stand-in for the OCR process that speaks its protocol. `act` is the code that runs for each request.
_STAND_IN = """
import json, os, struct, sys, time
L, LL = struct.Struct(">I"), struct.Struct(">II")
def answer(told):
    body = json.dumps(told).encode()
    sys.stdout.buffer.write(L.pack(len(body)) + body); sys.stdout.buffer.flush()
answer(READY)
while len(lengths := sys.stdin.buffer.read(8)) == 8:
    header, picture = map(sys.stdin.buffer.read, LL.unpack(lengths))
    ACT
"""


def stand_in(act: str, ready: str = '{"ready": True}') -> tuple[str, ...]:
    return (sys.executable, "-c", _STAND_IN.replace("ACT", act).replace("READY", ready))


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def reader(command: Sequence[str], *, timeout_s: float = PATIENCE_S, time: Time | None = None) -> OcrReader:
    return OcrReader(clock=time or Time(), command=command, timeout_s=timeout_s, start_timeout_s=PATIENCE_S)


def runs(of: OcrReader) -> bool:
    """Return whether the OCR process runs. It is a function because the answer may change between two calls."""
    return of.running


async def texts(of: OcrReader, look: VisionRequest = LOOK) -> list[str]:
    return [line.text for line in (await of.read(lambda: look)).lines]


async def test_a_screen_is_read() -> None:
    """The real reader reads a game's head-up display over a noisy picture, whole and in part."""
    async with reader(PATIENT_READER) as of:
        reading = await of.read(lambda: LOOK, urgent=True)
        assert reading.source is VisionSource.OCR
        read = {line.text.replace(" ", "") for line in reading.lines}
        assert read == {words.replace(" ", "") for _, _, words in HUD}
        # Bytes that are no picture give an error, and the next picture is read.
        with pytest.raises(VisionError):
            await of.read(lambda: VisionRequest(b"no picture"), urgent=True)
        part = await of.read(lambda: VisionRequest(PICTURE, boxes=(Box(0, 0.85, 0.4, 1),)), urgent=True)
        (line,) = part.lines
        assert line.text.replace(" ", "") == "WinterSoldierHP87"
        # The position in the whole picture: the text was drawn at (60, 640).
        assert abs(line.box.left - 60 / 1280) < 0.02
        assert abs(line.box.top - 645 / 720) < 0.03
        await of.kill()
        assert not of.running
    assert not of.running


async def test_who_rests_keeps_nobody_waiting_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one reading waits for its pause to end, an urgent reading is answered at once."""
    resting, time = asyncio.Event(), Time()

    async def rest(seconds: float) -> None:
        if seconds:
            resting.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(time, "sleep", rest)
    act = 'answer({"lines": [[picture.decode(), 0, 0, 1, 1, 1]], "cpu_s": 5})'
    async with reader(stand_in(act), time=time) as of:
        assert await texts(of, VisionRequest(b"first")) == ["first"]
        moving = asyncio.create_task(of.read(lambda: VisionRequest(b"moving")))
        await resting.wait()
        assert (await of.read(lambda: VisionRequest(b"asked"), urgent=True)).lines[0].text == "asked"
        moving.cancel()
        await asyncio.wait({moving})


@pytest.mark.parametrize("cancelled", [False, True])
async def test_the_end_of_the_last_share_waits_for_nobody(cancelled: bool) -> None:
    """A reading in progress, even one that hangs, fails then. The next picture is read by a new process, as after a
    reading that was cancelled: no answer is left behind that it would take for its own.
    """
    act = 'time.sleep(600) if picture == b"hang" else answer({"lines": [[picture.decode(), 0, 0, 1, 1, 1]]})'
    async with reader(stand_in(act)) as of:
        reached = asyncio.Event()

        def hang() -> VisionRequest:
            reached.set()
            return VisionRequest(b"hang")

        asked = asyncio.create_task(of.read(hang, urgent=True))
        await reached.wait()
        if cancelled:
            asked.cancel()
        else:
            await of.kill()
        with pytest.raises(asyncio.CancelledError if cancelled else VisionError):
            await asked
        assert not runs(of)
        assert await texts(of, VisionRequest(b"next")) == ["next"]


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        ("time.sleep(600)", "too long"),
        ('sys.stdout.buffer.write(b"\\xff\\xff\\xff\\xff"); sys.stdout.buffer.flush()', "stopped"),
        ("answer([])", "stopped"),
        ('answer({"error": "KeyError"})', "KeyError"),
        # Nested without end.
        ('sys.stdout.buffer.write(L.pack(400_000) + b"[" * 400_000); sys.stdout.buffer.flush()', "stopped"),
        ('answer({"error": "x" * 5_000})', r"\(x{40}\)"),
    ],
)
async def test_trouble_is_a_sentence(act: str, sentence: str) -> None:
    """A process that hangs, dies, sends nonsense or an answer without end, or reports an error."""
    async with reader(stand_in(act), timeout_s=0.3 if "sleep" in act else PATIENCE_S) as of:
        with pytest.raises(VisionError, match=sentence):
            await of.read(lambda: LOOK)
        assert runs(of) == ("error" in act)


async def test_what_is_missing_is_told_with_the_remedy() -> None:
    """The errors for a missing library and for a program that does not start name the problem, also while reading
    rests after several failures.
    """
    async with reader(stand_in("pass", '{"error": "ImportError"}')) as of:
        with pytest.raises(VisionError) as caught:
            await of.read(lambda: LOOK)
        assert str(caught.value) == MISSING
        for _ in range(3):
            with pytest.raises(VisionError, match="'screen'"):
                await of.read(lambda: LOOK)
    for command in (("/nowhere/python",), (sys.executable, "-c", "")):
        async with reader(command) as of:
            with pytest.raises(VisionError, match="could not start"):
                await of.read(lambda: LOOK)


async def test_after_failures_in_a_row_it_rests() -> None:
    """After three failures in a row, no process is started for a minute."""
    time = Time()
    async with reader(stand_in("os._exit(1)"), time=time) as of:
        for _ in range(3):
            with pytest.raises(VisionError, match="stopped"):
                await of.read(lambda: LOOK)
        with pytest.raises(VisionError, match="several times"):
            await of.read(lambda: LOOK)
        time.now += 61
        with pytest.raises(VisionError, match="stopped"):
            await of.read(lambda: LOOK)


async def test_a_picture_that_is_gone_costs_no_process() -> None:
    """If the picture is gone, the OCR process keeps running and reads the next picture."""

    def gone() -> VisionRequest:
        raise NoPictureError("This screen is no longer shared.")

    async with reader(stand_in('answer({"lines": [["Hi", 0, 0, 1, 1, 1]]})')) as of:
        for _ in range(5):
            with pytest.raises(NoPictureError, match="no longer shared"):
                await of.read(gone)
            assert runs(of)
        assert await texts(of) == ["Hi"]


async def test_reading_takes_a_share_of_the_time() -> None:
    """After a reading the reader pauses in proportion to its CPU time. An urgent reading does not wait."""
    time = Time()
    async with reader(stand_in('answer({"lines": [], "cpu_s": 0.6})'), time=time) as of:
        await of.read(lambda: LOOK)
        assert of.cpu_s == 0.6
        time.slept.clear()
        await of.read(lambda: LOOK, urgent=True)
        assert time.slept == []
        await of.read(lambda: LOOK)
        # The 0.6 s of work are 30 % of 2 s.
        assert time.slept == [pytest.approx(1.4)]


async def test_all_readings_together_take_that_share() -> None:
    """A reading that has waited for its turn pauses after the one that it waited for."""
    time = Time()
    async with reader(stand_in('answer({"lines": [], "cpu_s": 0.6})'), time=time) as of:
        await asyncio.gather(of.read(lambda: LOOK), of.read(lambda: LOOK))
    assert sum(time.slept) == pytest.approx(1.4)


async def test_the_latest_picture_is_read_when_the_turn_comes() -> None:
    """A waiting reading asks for its picture only when its turn comes, so it gets the latest one."""
    asked: list[str] = []
    async with reader(stand_in('answer({"lines": [[picture.decode(), 0, 0, 1, 1, 1]]})')) as of:

        def look(name: str) -> VisionRequest:
            # Only the reading whose turn it is asks for a picture.
            assert of.running
            asked.append(name)
            return VisionRequest(name.encode())

        first, second = (asyncio.create_task(of.read(partial(look, name))) for name in ("first", "second"))
        assert (await second).lines[0].text == "second"
        assert (await first).lines[0].text == "first"
    assert asked == ["first", "second"]


async def test_the_process_knows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The OCR process gets neither the bot's token nor a key, so a picture that exploits it finds none."""
    monkeypatch.setenv("DISCORD_TOKEN", "secret")
    act = 'answer({"lines": [[" ".join(sorted(os.environ)), 0, 0, 1, 1, 1]]})'
    async with reader(stand_in(act)) as of:
        (names,) = await texts(of)
    assert "DISCORD_TOKEN" in os.environ
    assert "DISCORD_TOKEN" not in names.split()
    assert "OMP_NUM_THREADS" in names.split()


async def test_a_hostile_answer_is_sifted() -> None:
    """Lines of the wrong shape are left out of an answer, and positions are limited to the picture."""
    lines = (
        '[["good", -5, 0, 9, 1, 0.9], "bad", ["bad"], ["bad", "a", 0, 1, 1, 1], ["bad", 10**400, 0, 1, 1, 1], None, 7]'
    )
    async with reader(stand_in(f'answer({{"lines": {lines}, "cpu_s": 10**400}})')) as of:
        (line,) = (await of.read(lambda: LOOK)).lines
        assert of.cpu_s == READ_TIMEOUT_S
    assert line.box == Box(0, 0, 1, 1)
    # After a pause of NaN seconds there would never be another reading.
    async with reader(stand_in('answer({"lines": 7, "cpu_s": float("nan")})')) as of:
        assert await texts(of) == []
        assert of.cpu_s == 0.0


GOOD = jpeg(screen())
LIMITS = {resource.RLIMIT_AS: 512 * 1024 * 1024, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}


def decoder(act: str, *, ready: str = '{"ready": True}', timeout_s: float = PATIENCE_S) -> FrameDecoder:
    """Return a decoder with a program of its own. `act`: the code that runs for each picture."""
    return FrameDecoder(command=stand_in(act, ready), timeout_s=timeout_s, start_timeout_s=PATIENCE_S)


def real_decoder() -> FrameDecoder:
    """Return the decoder itself, with time for a machine that is busy with other tests."""
    return FrameDecoder(timeout_s=PATIENCE_S, start_timeout_s=PATIENCE_S)


async def test_a_picture_is_decoded_elsewhere() -> None:
    """The grey copy from the process equals one made here. After a rest, the next picture starts another process."""
    async with real_decoder() as of:
        for _ in range(2):
            frame = await of.decode(GOOD)
            assert of.running
            assert np.array_equal(frame.luma, own_frame(GOOD).luma)
            await of.rest()
            assert not of.running


async def test_the_decoder_outlives_hostile_pictures() -> None:
    """Pictures whose header is right and whose scan is damaged are decoded or refused, all by the same process."""
    chance = random.Random(11)
    scan_at = GOOD.index(b"\xff\xda")
    async with real_decoder() as of:
        for _ in range(40):
            broken = bytearray(GOOD)
            for _ in range(chance.randint(1, 30)):
                broken[chance.randrange(scan_at, len(GOOD) - 2)] = chance.randrange(255)
            with contextlib.suppress(FrameRefusedError):
                assert (await of.decode(bytes(broken))).luma.shape == (LUMA_HEIGHT, LUMA_WIDTH)
        assert of.running


@pytest.mark.parametrize(
    "act",
    [
        "os._exit(1)",
        "time.sleep(600)",
        "answer({'error': 'OSError'})",
        "answer({'luma': 'AAAA'})",
        "answer({'luma': 'é'})",
        "answer({'luma': 7})",
    ],
)
async def test_a_picture_that_breaks_the_decoder_is_refused(act: str) -> None:
    """A picture on which the process dies, hangs or sends nonsense is refused."""
    async with decoder(act, timeout_s=0.3 if "sleep" in act else PATIENCE_S) as of:
        with pytest.raises(FrameRefusedError):
            await of.decode(GOOD)


async def test_a_decoder_that_does_not_start_is_no_fault_of_the_picture() -> None:
    for of in (FrameDecoder(command=("/nowhere/python",)), decoder("pass", ready='{"error": "MemoryError"}')):
        async with of:
            with pytest.raises(VisionError, match=r"could not (start|load)"):
                await of.decode(GOOD)
            assert not of.running


def test_the_process_that_holds_the_token_has_no_decoder() -> None:
    """Nothing that the web pages and the shares import loads Pillow or OpenCV."""
    code = (
        "import sys, bot.screen.screens, bot.web.server, bot.wiring.pages; "
        "print({'PIL', 'cv2', 'rapidocr'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "set()"


async def test_the_decoder_may_write_no_file_and_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that decodes has limits on memory and on the size of files, and leaves no core dump."""
    start, started = asyncio.create_subprocess_exec, list[asyncio.subprocess.Process]()

    async def kept(*args: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*args, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", kept)
    async with real_decoder() as of:
        await of.decode(GOOD)
        (process,) = started
        limits = {each: resource.prlimit(process.pid, each) for each in LIMITS}
    assert limits == {each: (most, most) for each, most in LIMITS.items()}
