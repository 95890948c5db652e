"""What the bot hears of a recording that comes through Discord: Opus with lost packets, jitter buffer, endpointing.

Faster than real time: the packets get the arrival times that they would have had. Encryption and sockets are left out,
because they lose nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bot.wiring.speech_models import open_vad
from rehearsal.people.clip import FRAME_S
from voice.audio import LISTEN_FRAME_SAMPLES, LISTEN_RATE_HZ, Pcm
from voice.listening.listener import RoomListener
from voice.listening.utterance import DropReason, Utterance, UtteranceDropped
from voice.transport import opus
from voice.transport.audio_events import AudioEvent, SpeechFrames, TalkspurtEnded
from voice.transport.jitter import FRAME_TICKS, JitterBuffer, OrderedFrame, Released, SpurtEnded
from voice.transport.talkspurt_clock import CLOCK_HZ

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bot.settings import ModelsSettings

_USER = 1
_SSRC = 1
# Seconds after the last packet: longer than any silence that ends speech.
_AFTER_S = 2.0
# How often a room advances its time when no packets come.
_TICK_S = 0.02


@dataclass(frozen=True, slots=True)
class HeardRecording:
    """What endpointing made of one recording. `dropped`: why sounds were not passed on to the recogniser."""

    utterances: tuple[Utterance, ...]
    dropped: tuple[DropReason, ...]


def lossy(packets: Sequence[bytes], *, loss: float, seed: int) -> list[tuple[int, bytes]]:
    """Return the packets that arrive, with their numbers: each is lost with the probability `loss` (0-1)."""
    chance = random.Random(seed)  # noqa: S311 - which packets are lost is no secret
    return [(number, packet) for number, packet in enumerate(packets) if chance.random() >= loss]


def decoded(packets: Sequence[tuple[int, bytes]]) -> Pcm:
    """Return the sound of `packets` (their numbers and contents, 20 ms each) as the jitter buffer and the decoder give
    it, uncut. Blocks.
    """
    heard = [event for _, events in _arriving(packets) for event in events]
    return np.concatenate([np.zeros(0, np.int16), *(event.pcm for event in heard if isinstance(event, SpeechFrames))])


class DiscordPath:
    """One room's listener, which gets one recording after the other. Nobody answers what it hears. Not thread-safe.

    Raises `VoiceError` if its model is missing.
    """

    def __init__(self, models: ModelsSettings) -> None:
        self._detector = open_vad(models)

    def hear(self, packets: Sequence[tuple[int, bytes]]) -> HeardRecording:
        """Return the utterances in `packets`: their numbers and contents, 20 ms each. Blocks."""
        listener = RoomListener(self._detector)
        utterances: list[Utterance] = []
        dropped: list[DropReason] = []
        for now, events in _arriving(packets):
            for event in (*listener.hear(events, now), *listener.tick(now)):
                if isinstance(event, Utterance):
                    utterances.append(event)
                elif isinstance(event, UtteranceDropped):
                    dropped.append(event.reason)
        return HeardRecording(tuple(utterances), tuple(dropped))


def _arriving(packets: Sequence[tuple[int, bytes]]) -> Iterator[tuple[float, list[AudioEvent]]]:
    """Yield every 20 ms the time, and what the jitter buffer releases, until well after the last packet."""
    jitter, decoder = JitterBuffer(), opus.Decoder()
    arrivals = dict(packets)
    for number in range(max(arrivals, default=0) + round(_AFTER_S / _TICK_S)):
        now = (number + 1) * FRAME_S
        payload = arrivals.get(number)
        if payload is not None:
            jitter.push(number, number * FRAME_TICKS, payload, arrived_at=now)
        yield now, [_event(item, decoder) for item in jitter.release(now)]


def _event(item: Released, decoder: opus.Decoder) -> AudioEvent:
    """Decode what the jitter buffer releases, as `voice.transport.receiver` does."""
    if isinstance(item, SpurtEnded):
        return TalkspurtEnded(_USER, _SSRC, item.at)
    samples = item.ticks * LISTEN_RATE_HZ // CLOCK_HZ
    if isinstance(item, OrderedFrame):
        pcm = decoder.decode(item.payload)
    elif item.next_payload is not None and opus.carries_fec(item.next_payload):
        pcm = decoder.recover(item.next_payload, samples)
    else:
        pcm = decoder.conceal(samples)
    return SpeechFrames(_USER, _SSRC, item.captured_at, _whole(pcm))


def _whole(pcm: Pcm) -> Pcm:
    """Return `pcm` filled up to whole frames."""
    missing = -len(pcm) % LISTEN_FRAME_SAMPLES
    return np.concatenate([pcm, np.zeros(missing, np.int16)]) if missing else pcm
