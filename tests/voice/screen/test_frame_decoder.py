"""Pictures are decoded in another process. A picture that breaks it costs that picture and nothing else."""

from __future__ import annotations

import random
import resource
import subprocess
import sys

import numpy as np
import pytest

from tests.patience import PATIENCE_S
from tests.voice.screen.screens import jpeg, own_frame, screen
from tests.voice.screen.test_ocr import stand_in
from voice.screen.frame import LUMA_HEIGHT, LUMA_WIDTH, FrameRefusal, FrameRefusedError
from voice.screen.frame_decoder import FrameDecoder
from voice.screen.port import VisionError

GOOD = jpeg(screen())
LIMITS = {resource.RLIMIT_AS: 512 * 1024 * 1024, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}


def decoder(act: str, *, ready: str = '{"ready": True}', timeout_s: float = PATIENCE_S) -> FrameDecoder:
    """Return a decoder with a program of its own. `act`: the code that runs for each picture."""
    command = tuple(
        part.replace("header, picture = part(), part()", "picture = part()") for part in stand_in(act, ready)
    )
    return FrameDecoder(command=command, timeout_s=timeout_s, start_timeout_s=PATIENCE_S)


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
            try:
                assert (await of.decode(bytes(broken))).luma.shape == (LUMA_HEIGHT, LUMA_WIDTH)
            except FrameRefusedError as error:
                assert error.reason in {FrameRefusal.DAMAGED, FrameRefusal.PROGRESSIVE}  # noqa: PT017 - either is right
        assert of.running


async def test_a_hostile_header_does_not_reach_the_process() -> None:
    """A picture with 100,000 empty segments is refused without starting a process."""
    async with real_decoder() as of:
        with pytest.raises(FrameRefusedError) as caught:
            await of.decode(b"\xff\xd8" + b"\xff\xe1\0\2" * 99_999 + b"\xff\xd9")
        assert caught.value.reason is FrameRefusal.MANY_SEGMENTS
        assert not of.running


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
    """A picture on which the process dies, hangs or sends nonsense is refused as damaged."""
    async with decoder(act, timeout_s=0.3 if "sleep" in act else PATIENCE_S) as of:
        with pytest.raises(FrameRefusedError) as caught:
            await of.decode(GOOD)
        assert caught.value.reason is FrameRefusal.DAMAGED


async def test_a_decoder_that_does_not_start_is_no_fault_of_the_picture() -> None:
    """If the program does not start, the error is about the decoder and not about the picture."""
    for of in (FrameDecoder(command=("/nowhere/python",)), decoder("pass", ready='{"error": "missing"}')):
        async with of:
            with pytest.raises(VisionError, match="could not be started"):
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


async def test_the_decoder_may_write_no_file_and_take_no_memory_without_end() -> None:
    """The process that decodes has limits on memory and on the size of files, and leaves no core dump."""
    async with real_decoder() as of:
        await of.decode(GOOD)
        process = of._process
        assert process is not None
        limits = {each: resource.prlimit(process.pid, each) for each in LIMITS}
    assert limits == {each: (most, most) for each, most in LIMITS.items()}
