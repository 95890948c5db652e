"""Plays a source of discord.py over our sending thread, as its voice client would over its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import discord
import structlog

from voice.transport import opus

if TYPE_CHECKING:
    from collections.abc import Callable

    from voice.audio import Pcm
    from voice.transport.outgoing import FrameSource

_log = structlog.get_logger()

# discord.py's default, in kbit/s, and the least that its encoder takes.
_MOST_KBPS, _LEAST_KBPS = 128, 16


class SourceFrames:
    """The frames of one source; those of a `FrameSource` as they are. `over`: there are no more.

    The source is read in the sending thread. `after` is called where it ends, with the error that ended it or None.
    """

    def __init__(
        self,
        source: discord.AudioSource | FrameSource,
        after: Callable[[Exception | None], Any] | None = None,
        *,
        bitrate_bps: int,
    ) -> None:
        """`bitrate_bps`: the channel's limit. Raises `OpusMissingError`."""
        if not discord.opus.is_loaded():
            discord.opus.load_opus(opus.library()._name)
        self._encoder = discord.opus.Encoder(bitrate=min(max(bitrate_bps // 1000, _LEAST_KBPS), _MOST_KBPS))
        self._source = source
        self._after = after
        self._ending = threading.Lock()
        self.over = False

    def next_frame(self) -> Pcm | bytes | None:
        """See `FrameSource.next_frame`. Stereo is sent as stereo."""
        source, error = self._source, None
        if self.over:
            return None
        if not isinstance(source, discord.AudioSource):
            return source.next_frame()
        try:
            frame = source.read()
            if frame and not source.is_opus():
                frame = self._encoder.encode(frame, self._encoder.SAMPLES_PER_FRAME)
        except Exception as failed:  # noqa: BLE001 - a source is somebody else's; `after` gets what it raised
            frame, error = b"", failed
        if not frame:
            self.end(error)
        return frame or None

    def end(self, error: Exception | None = None) -> None:
        """End the source, and tell so, once. `after` may block, so the event loop does not call this."""
        with self._ending:
            was_over, self.over = self.over, True
        if was_over:
            return
        try:
            if self._after is not None:
                self._after(error)
            if isinstance(self._source, discord.AudioSource):
                self._source.cleanup()
        except Exception:  # noqa: BLE001 - whatever the program does then, sending goes on
            _log.exception("source_end_failed")
