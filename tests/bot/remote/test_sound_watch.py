"""A pause in speech: nobody is heard, and the bot plays nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bot.remote.sound_watch import SoundWatch
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
