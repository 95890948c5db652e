"""A person's DAVE implementation works with the local Discord's delivery service."""

from __future__ import annotations

import pytest

from rehearsal.discord.dave.effects import DaveOpcode, SendBinary
from rehearsal.people.dave import BinaryMessage, DaveMember, UndecryptableError
from tests.rehearsal.people.exchange import CHANNEL, Exchange
from voice.transport.opus import SILENCE_FRAME

ADA, BEN, CLEO = 41, 42, 43
OPUS = bytes.fromhex("48") + bytes(range(60))


def hears(exchange: Exchange, listener: int, speaker: int, opus: bytes = OPUS) -> bool:
    """Return whether the listener decrypts the speaker's frame correctly."""
    frame = exchange.parties[speaker].encrypt(opus)
    assert frame is not None
    return exchange.parties[listener].decrypt(speaker, frame) == opus


def test_nobody_speaks_alone() -> None:
    """A member who is alone has no keys and can send only silence."""
    exchange = Exchange()
    ada = exchange.join(ADA)
    assert not ada.can_send
    assert ada.encrypt(OPUS) is None
    assert ada.encrypt(SILENCE_FRAME) == SILENCE_FRAME


def test_two_hear_each_other() -> None:
    """Two members share keys, and what they send is encrypted."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    assert ada.can_send
    assert ben.can_send
    assert ada.encrypt(OPUS) != OPUS
    assert hears(exchange, BEN, ADA)
    assert hears(exchange, ADA, BEN)


def test_a_third_joins_and_leaves_while_two_talk() -> None:
    """Each change of members starts a new epoch. Frames that were sent in the old epoch can still be decrypted."""
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
    """A commit after the first has a transition id, and every member answers that it is ready (op 23)."""
    exchange = Exchange()
    exchange.join(ADA)
    exchange.join(BEN)
    exchange.join(CLEO)
    assert exchange.service.pending_transitions == ()
    assert (ADA, DaveOpcode.EXECUTE_TRANSITION) in exchange.delivered


def test_a_downgrade_sends_plain_opus_and_an_upgrade_encrypts_again() -> None:
    """After op 22 with version 0 all members send plain Opus, and after an upgrade encrypted frames again."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    late = ben.encrypt(OPUS)
    exchange.take(exchange.service.downgrade())
    exchange.settle()
    assert ada.version == ben.version == 0
    assert ada.encrypt(OPUS) == OPUS
    assert ben.decrypt(ADA, OPUS) == OPUS
    # This frame was encrypted before the downgrade and arrives after it.
    assert late is not None
    assert ada.decrypt(BEN, late) == OPUS
    exchange.take(exchange.service.upgrade())
    exchange.settle()
    assert ada.version == ben.version == 1
    assert ada.encrypt(OPUS) != OPUS
    assert hears(exchange, BEN, ADA)
    # This plain frame was sent before the upgrade and arrives after it.
    assert ben.decrypt(ADA, OPUS) == OPUS


def test_a_new_group_replaces_the_old_one() -> None:
    """On op 24 with epoch 1 every member offers a new key package, and members hear each other again."""
    exchange = Exchange()
    ada, _ = exchange.join(ADA), exchange.join(BEN)
    exchange.take(exchange.service.recreate())
    exchange.settle()
    assert ada.can_send
    assert hears(exchange, BEN, ADA)
    assert hears(exchange, ADA, BEN)


@pytest.mark.parametrize("opcode", [DaveOpcode.PROPOSALS, DaveOpcode.ANNOUNCE_COMMIT, DaveOpcode.WELCOME])
def test_a_damaged_message_costs_a_rejoin_not_the_call(opcode: int) -> None:
    """A member who gets a damaged message reports it (op 31) and is added again."""
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
    """A proposal to add a user whom op 11 did not announce is reported and not committed."""
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
    """Random bytes in any message raise nothing."""
    party = DaveMember(user_id=ADA, channel_id=CHANNEL)
    assert party.handle_binary(op, body, []) == []
    party.begin(1)
    party.handle_binary(op, body, [])
    assert not party.can_send


def test_anothers_key_does_not_fit() -> None:
    """A frame can be decrypted only with its sender's key, so the key identifies the sender of an unknown SSRC."""
    exchange = Exchange()
    ada, ben = exchange.join(ADA), exchange.join(BEN)
    exchange.join(CLEO)
    frame = ada.encrypt(OPUS)
    assert frame is not None
    with pytest.raises(UndecryptableError):
        ben.decrypt(CLEO, frame)
    assert ben.decrypt(ADA, frame) == OPUS
