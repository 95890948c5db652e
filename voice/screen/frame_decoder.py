"""Has pictures of shared screens decoded in another process, for change detection.

The decoder is the part that a hostile picture attacks, so it runs without the bot's token, with limits on memory and
time (`voice.screen.picture_worker`). It takes a few milliseconds a picture and does not wait for the reader of text.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Final

import structlog

from voice.screen.frame import FrameRefusedError, ScreenFrame, assemble_frame, check_header
from voice.screen.port import VisionError
from voice.screen.worker_process import DECODE, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence


log = structlog.get_logger()

# Python and Pillow load in 0.2 s, or in some seconds on a busy machine.
START_TIMEOUT_S: Final = 20.0
# A full picture takes about 3 ms, a hostile one of the permitted size 20 ms. The rest is for a busy machine.
DECODE_TIMEOUT_S: Final = 3.0


class FrameDecoder(WorkerProcess):
    """Checks and decodes pictures, one at a time. `command`: the program that decodes. The process starts with the
    first picture.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = DECODE,
        timeout_s: float = DECODE_TIMEOUT_S,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        super().__init__(command, start_timeout_s=start_timeout_s, timeout_s=timeout_s)
        self._turn = asyncio.Lock()

    async def decode(self, data: bytes) -> ScreenFrame:
        """Check and decode the picture file `data`.

        Raises `FrameRefusedError` if something is wrong with the picture, and `VisionError` if no process can be
        started to decode it.
        """
        check_header(data)
        async with self._turn:
            await self.start()
            try:
                luma = (await self.ask((), data)).get("luma")
            except VisionError as error:
                log.warning("picture_broke_decoder", problem=error, byte_count=len(data))
                raise FrameRefusedError from error
        try:
            return assemble_frame(data, base64.b64decode(luma if isinstance(luma, str) else "", validate=True))
        except ValueError as error:
            # Signs beyond ASCII raise another one than `binascii.Error`.
            raise FrameRefusedError from error

    async def rest(self) -> None:
        """End the process to free its memory, because nobody shares a screen any more."""
        async with self._turn:
            await self.kill()
