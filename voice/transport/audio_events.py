"""The transport's output: decoded sound of one person, and the ends of talkspurts.

Times are seconds of `time.monotonic()`. `captured_at` is the time on the speaker's own time line: the arrival of the
talkspurt's first packet plus the RTP distance from it, so jitter and buffering do not change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from voice.audio import Pcm


# A tuple is made in a third of the time of a dataclass, and a hundred speakers need 5,000 a second.
class SpeechFrames(NamedTuple):
    """A contiguous run of one person's sound: mono int16 in whole frames of 20 ms, at the rate of the connection
    (16 kHz unless it was asked for 48).

    `lost`: how many packets of theirs had not come when it was made, since their run before. `concealed`: of those, the
    ones whose sound is invented; the others were decoded from the copy in the packet after them.
    """

    user_id: int
    ssrc: int
    captured_at: float
    pcm: Pcm
    lost: int = 0
    concealed: int = 0


@dataclass(frozen=True, slots=True)
class TalkspurtEnded:
    """The person's client stopped sending (silence frames, or no packet for 200 ms)."""

    user_id: int
    ssrc: int
    at: float


@dataclass(frozen=True, slots=True)
class SpeakerLeft:
    """The person left the channel; no more of their events follow."""

    user_id: int
    at: float


AudioEvent: TypeAlias = SpeechFrames | TalkspurtEnded | SpeakerLeft
