"""One person's end of DAVE, against the local Discord's delivery service."""

from __future__ import annotations

import pytest

from rehearsal.discord.delivery import DaveOpcode, SendBinary
from rehearsal.people.dave import BinaryMessage, DaveMember, UndecryptableError
from tests.rehearsal.people.exchange import CHANNEL, Exchange
from voice.transport.opus import SILENCE_FRAME

ADA, BEN, CLEO = 41, 42, 43
OPUS = bytes.fromhex("48") + bytes(range(60))


def hears(exchange: Exchange, listener: int, speaker: int, opus: bytes = OPUS) -> bool:
    """Return whether a frame arrives as it was said."""
    frame = exchange.parties[speaker].encrypt(opus)
    assert frame is not None
    return exchange.parties[listener].decrypt(speaker, frame) == opus


def test_nobody_speaks_alone() -> None:
    """Without a group there are no keys, so nothing can be sent, silence apart."""
    exchange = Exchange()
    ada = exchange.join(ADA)
    assert not ada.can_send
    assert ada.encrypt(OPUS) is None
    assert ada.encrypt(SILENCE_FRAME) == SILENCE_FRAME


def test_two_hear_each_other() -> None:
    """The first commit that wins makes the group; frames are not the plain Opus."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    assert ada.can_send
    assert ben.can_send
    assert ada.encrypt(OPUS) != OPUS
    assert hears(exchange, BEN, ADA)
    assert hears(exchange, ADA, BEN)


def test_a_third_joins_and_leaves_while_two_talk() -> None:
    """Each change of members is a new epoch; frames under way from the old one still open."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    under_way = ada.encrypt(OPUS)
    exchange.join(CLEO)
    assert under_way is not None
    assert ben.decrypt(ADA, under_way) == OPUS
    assert hears(exchange, CLEO, ADA)
    assert hears(exchange, BEN, CLEO)
    exchange.leave(CLEO)
    assert hears(exchange, BEN, ADA)
    assert ada.epochs_landed == ben.epochs_landed == 3


def test_a_transition_is_answered() -> None:
    """A commit after the first names a transition, and everyone says that they are ready (op 23)."""
    exchange = Exchange()
    exchange.join(ADA)
    exchange.join(BEN)
    exchange.join(CLEO)
    assert exchange.service.pending_transitions == ()
    assert (ADA, DaveOpcode.EXECUTE_TRANSITION) in exchange.delivered


def test_a_downgrade_sends_plain_opus_and_an_upgrade_encrypts_again() -> None:
    """Version 0 takes force for all at op 22; after the new group everybody hears everybody."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    late = ben.encrypt(OPUS)
    exchange.take(exchange.service.downgrade())
    exchange.settle()
    assert ada.version == ben.version == 0
    assert ada.encrypt(OPUS) == OPUS
    assert ben.decrypt(ADA, OPUS) == OPUS
    # A frame that was encrypted before the switch and arrives after it.
    assert late is not None
    assert ada.decrypt(BEN, late) == OPUS
    exchange.take(exchange.service.upgrade())
    exchange.settle()
    assert ada.version == ben.version == 1
    assert ada.encrypt(OPUS) != OPUS
    assert hears(exchange, BEN, ADA)
    # A plain frame that was sent before the upgrade took force.
    assert ben.decrypt(ADA, OPUS) == OPUS


def test_a_new_group_replaces_the_old_one() -> None:
    """Op 24 with epoch 1: everybody offers a fresh key package, and speech goes on."""
    exchange = Exchange()
    ada, _ = exchange.join(ADA), exchange.join(BEN)
    exchange.take(exchange.service.recreate())
    exchange.settle()
    assert ada.can_send
    assert hears(exchange, BEN, ADA)
    assert hears(exchange, ADA, BEN)


@pytest.mark.parametrize("opcode", [DaveOpcode.PROPOSALS, DaveOpcode.ANNOUNCE_COMMIT, DaveOpcode.WELCOME])
def test_a_damaged_message_costs_a_rejoin_not_the_call(opcode: int) -> None:
    """A message that MLS refuses is reported (op 31), and the party is added again."""
    exchange = Exchange()
    exchange.join(ADA)
    exchange.join(BEN)
    cleo = exchange.parties[CLEO] = DaveMember(user_id=CLEO, channel_id=CHANNEL)
    exchange.take(exchange.service.connect(CLEO))
    exchange.said(CLEO, cleo.begin(1))
    exchange.settle(damage=opcode)
    assert sum(party.recoveries for party in exchange.parties.values()) == 1
    for listener, speaker in ((ADA, BEN), (BEN, CLEO), (CLEO, ADA)):
        assert hears(exchange, listener, speaker)


def test_a_stranger_is_refused() -> None:
    """A proposal for somebody whom the gateway never announced (op 11) is reported, not committed."""
    exchange = Exchange()
    ada = exchange.join(ADA)
    exchange.join(BEN)
    uninvited = DaveMember(user_id=CLEO, channel_id=CHANNEL)
    exchange.service.connect(CLEO)
    (package,) = uninvited.begin(1)
    assert isinstance(package, BinaryMessage)
    proposals = [
        effect.body
        for effect in exchange.service.key_package(CLEO, package.body)
        if isinstance(effect, SendBinary) and (effect.user_id, effect.opcode) == (ADA, DaveOpcode.PROPOSALS)
    ]
    (proposal,) = proposals
    answers = ada.handle_binary(DaveOpcode.PROPOSALS, proposal, [ADA, BEN])
    assert [answer.op for answer in answers] == [DaveOpcode.INVALID_COMMIT_WELCOME, DaveOpcode.KEY_PACKAGE]


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\1", b"\7" * 90])
@pytest.mark.parametrize("op", [25, 27, 29, 30])
def test_noise_never_raises(op: int, body: bytes) -> None:
    """Any bytes as any message are survived."""
    party = DaveMember(user_id=ADA, channel_id=CHANNEL)
    assert party.handle_binary(op, body, []) == []
    party.begin(1)
    party.handle_binary(op, body, [])
    assert not party.can_send


def test_anothers_key_does_not_fit() -> None:
    """Keys are per sender, which is what lets an unknown SSRC be tried."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    exchange.join(CLEO)
    frame = ada.encrypt(OPUS)
    assert frame is not None
    with pytest.raises(UndecryptableError):
        ben.decrypt(CLEO, frame)
    assert ben.decrypt(ADA, frame) == OPUS
