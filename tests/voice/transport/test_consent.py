"""Nothing is decoded that came before its sender might be heard, however late the bot learns whose it is."""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fakes.dave_room import DaveRoom
from tests.voice.transport.receiver_scene import ANA, BEN, Ear, assert_each_datagram_has_one_fate
from voice.audio import DISCORD_FRAME_SAMPLES
from voice.transport.opus import Decoder, Encoder

SSRC = 11
# What happens in a room: somebody speaks for a frame, or a frame is lost; they agree or opt out; it becomes known, or
# unknown again, which SSRC is theirs; the bot is busy for a moment.
STEPS = ("speaks", "loses", "agrees", "opts out", "known", "unknown", "pauses")


@cache
def frames() -> list[bytes]:
    """Return Opus frames of noise, of which no two are alike."""
    encoder, random = Encoder(), np.random.default_rng(7)
    made = [encoder.encode(random.integers(-9000, 9000, DISCORD_FRAME_SAMPLES).astype(np.int16)) for _ in range(60)]
    assert len(set(made)) == len(made)
    return made


@cache
def encrypted_room() -> DaveRoom:
    """Return a room that all examples share."""
    return DaveRoom(ANA, BEN)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=50), st.booleans())
@example(["speaks"] * 25 + ["agrees", "known"], False)
@example(["speaks"] * 25 + ["agrees", "speaks", "pauses"], True)
@example(["agrees", "speaks", "opts out", "agrees", "known"], False)
@example(["agrees", "known", "speaks", "loses", "speaks", "opts out", "agrees", "speaks", "pauses"], True)
def test_nothing_from_before_consent_is_decoded(steps: list[str], encrypts: bool) -> None:
    """In every order of speaking, consenting, opting out and SSRCs becoming known."""
    ear = Ear(room=encrypted_room(), excluded={ANA})
    if not encrypts:
        ear.keys.dave_session, ear.keys.dave_protocol_version = None, 0
    ana, left = ear.sender(ANA, SSRC), list(frames())
    # Frame -> the consent that there was when it came; 0: none. `consents`: how many there have been.
    came_under: dict[bytes, int] = {}
    consents, decoded = 0, list[bytes]()
    decode = Decoder.decode

    def watched(decoder: Decoder, payload: bytes) -> object:
        decoded.append(payload)
        assert came_under[payload] == (0 if ANA in ear.excluded else consents) != 0
        return decode(decoder, payload)

    with patch.object(Decoder, "decode", watched):
        for step in steps:
            ear.now += 0.001
            if step == "speaks" and left:
                frame = left.pop()
                came_under[frame] = 0 if ANA in ear.excluded else consents
                ear.take(ana.datagram(frame, clear=not encrypts), after_s=0.019)
            elif step == "loses":
                ana.skip()
            elif step == "agrees" and ANA in ear.excluded:
                consents += 1
                ear.agreed_at[ANA] = ear.now
                ear.excluded.discard(ANA)
            elif step == "opts out":
                ear.excluded.add(ANA)
            elif step == "known":
                ear.receiver.speaks(SSRC, ANA)
            elif step == "unknown":
                ear.receiver.left(ANA)
                ear.receiver.joined({ANA})
            elif step == "pauses":
                ear.rest(0.3)
        assert_each_datagram_has_one_fate(ear)


@pytest.mark.parametrize("encrypts", [True, False])
def test_what_came_since_the_consent_is_heard_from_its_first_frame(*, encrypts: bool) -> None:
    """The bot may learn later whose it is: that costs nobody the beginning of a sentence."""
    ear = Ear(room=encrypted_room(), excluded={ANA})
    if not encrypts:
        ear.keys.dave_session, ear.keys.dave_protocol_version = None, 0
    ana = ear.sender(ANA, SSRC)
    for n, frame in enumerate(frames()[:20]):
        if n == 10:
            ear.agreed_at[ANA] = ear.now - 0.001
            ear.excluded.discard(ANA)
        ear.take(ana.datagram(frame, clear=not encrypts))
    ear.receiver.speaks(SSRC, ANA)
    ear.rest(0.5)
    assert ear.frames_of(ANA) == 10
    assert_each_datagram_has_one_fate(ear)


def test_what_waited_in_the_socket_over_the_consent_is_not_heard() -> None:
    """When it was read tells nothing: it may have been said before."""
    ear = Ear(room=encrypted_room())
    ana = ear.sender(ANA, SSRC)
    ear.receiver.speaks(SSRC, ANA)
    ear.agreed_at[ANA] = ear.now - 0.01
    ear.receiver.set_came_after(ear.now - 0.02)
    ear.say(ana, 5)
    ear.receiver.set_came_after(ear.now - 0.02)
    ear.say(ana, 5)
    ear.rest(0.5)
    assert (ear.frames_of(ANA), ear.counters.excluded) == (5, 5)
