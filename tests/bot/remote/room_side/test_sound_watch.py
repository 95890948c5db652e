"""A pause in speech: nobody is heard, and the bot plays nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bot.remote.room_side.sound_watch import SoundWatch, pause_needed_s
from voice.transport.audio_events import SpeechFrames, TalkspurtEnded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voice.audio import Pcm
    from voice.transport.audio_events import AudioEvent

FRAME = np.zeros(960, np.int16)
SPEECH = SpeechFrames(1, 2, 0.0, np.zeros(320, np.int16))
END = TalkspurtEnded(1, 2, 0.0)


class Player:
    """Plays what the test wants."""

    frame: Pcm | None = None

    def next_frame(self) -> Pcm | None:
        """Return it."""
        return self.frame


@pytest.mark.parametrize(
    ("waited_s", "needed_s"), [(-1.0, 0.8), (0.0, 0.8), (4.0, 0.4), (7.0, 0.1), (8.0, 0.0), (99.0, 0.0)]
)
def test_the_longer_it_waits_the_shorter_the_pause_that_is_enough(waited_s: float, needed_s: float) -> None:
    """So people who hardly pause lose the beginning of a sentence rather than the middle of one."""
    assert pause_needed_s(waited_s, most_s=0.8, within_s=8.0) == pytest.approx(needed_s)


def test_it_is_quiet_since_the_last_sound_of_anybody() -> None:
    """The end of a talkspurt is no sound. Everything is passed on."""
    now, player = [0.0], Player()
    heard: list[Sequence[AudioEvent]] = []
    watch = SoundWatch(player, heard.append, monotonic=lambda: now[0])
    assert watch.quiet_s() == 0
    now[0] += 0.5
    assert watch.quiet_s() == 0.5
    watch.hear([END, SPEECH])
    assert watch.quiet_s() == 0
    now[0] += 0.25
    watch.hear([END])
    assert watch.next_frame() is None
    assert watch.quiet_s() == 0.25
    player.frame = FRAME
    assert watch.next_frame() is FRAME
    assert watch.quiet_s() == 0
    assert heard == [[END, SPEECH], [END]]
