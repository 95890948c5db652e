"""What each member of the crowd says in each 20 ms, and when they pause. Pure: the same crowd always says the same."""

from __future__ import annotations

import random
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias

from rehearsal.people.clip import FRAME_S, Clip
from rehearsal.script.scenario_file import scenario_path
from voice.transport.opus import SILENCE_FRAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RecordedPackets: TypeAlias = "tuple[bytes, ...]"
# One entry for each 20 ms: an Opus packet, or None in a pause.
CrowdTalk: TypeAlias = "tuple[bytes | None, ...]"

# At the end of a talkspurt, as Discord's clients send it.
SILENCE_FRAMES = 5
# Recordings that somebody says one after the other, which makes two to nine seconds.
_RECORDINGS_OF_A_STRETCH = (1, 3)
# The silence that ends an utterance is 0.42 to 1.1 s. So most of these pauses end one, and in some the speaker goes on.
_PAUSE_S = (0.8, 1.8)


def bundled_recordings() -> tuple[RecordedPackets, ...]:
    """Return the Opus packets, 20 ms each, of the bundled recordings: a sentence each. Reads files."""
    return tuple(Clip.load(path).packets for path in sorted(scenario_path("crowd").parent.glob("*.ogg")))


def joined(recordings: Iterable[RecordedPackets]) -> RecordedPackets:
    """Return the packets of recordings one after the other."""
    return tuple(chain.from_iterable(recordings))


def without_pauses(recordings: Sequence[RecordedPackets], *, people: int, frames: int) -> list[CrowdTalk]:
    """Return the talks of people who all speak for so many frames, and fall silent. Each of them begins elsewhere in
    the recordings, which are one long talk.
    """
    packets = joined(recordings)
    shifts = [number * len(packets) // max(1, people) for number in range(people)]
    return [_ended(packets[(shift + frame) % len(packets)] for frame in range(frames)) for shift in shifts]


def with_pauses(recordings: Sequence[RecordedPackets], *, people: int, frames: int) -> list[CrowdTalk]:
    """Return the talks of people who pause again and again, each at moments of their own, for so many frames.

    Between two pauses each says one to three whole recordings. They all begin inside one.
    """
    return [_ended(islice(_stretches(recordings, number), frames)) for number in range(people)]


def _stretches(recordings: Sequence[RecordedPackets], person: int) -> Iterator[bytes | None]:
    """Yield what one person says in each 20 ms, without an end."""
    chance = random.Random(person)  # noqa: S311 - when they pause
    at = chance.randrange(len(recordings))
    # Inside the first recording, so that not all of them pause for the first time at the same moment.
    begun = chance.randrange(len(recordings[at]))
    while True:
        count = chance.randint(*_RECORDINGS_OF_A_STRETCH)
        said = joined(recordings[(at + number) % len(recordings)] for number in range(count))
        yield from said[begun:]
        yield from (SILENCE_FRAME,) * SILENCE_FRAMES
        yield from (None,) * (round(chance.uniform(*_PAUSE_S) / FRAME_S) - SILENCE_FRAMES)
        at, begun = (at + count) % len(recordings), 0


def _ended(said: Iterable[bytes | None]) -> CrowdTalk:
    """Return a talk with its end: silence frames if it stops while the person speaks, and otherwise nothing more."""
    talk = tuple(said)
    speaks = bool(talk) and talk[-1] is not None
    return (*talk, *((SILENCE_FRAME if speaks else None,) * SILENCE_FRAMES))
