"""The DAVE delivery service of one voice channel: its group, the winning commits, and the times at which keys change.

The service is a state machine without I/O: each event returns the messages to send, in order, and the timers to start.
It follows Discord's protocol.md ("Group Key Exchange"). Where protocol.md leaves a choice, the service does what davey
0.1.7 can handle:

- Only one batch of proposals is open at a time, with removals and additions together. If davey gets an Add in one batch
  and a Remove (or a revocation) in the next batch, its commit lacks the Welcome, and is refused. So a change that comes
  while a batch is open waits for the commit, and a change that makes the batch invalid revokes the whole batch.
- A proposal is sent only to clients that can process it: discord.py crashes on a proposal for another epoch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import partial

import structlog

from rehearsal.discord.dave import mls
from rehearsal.discord.dave.group import (
    INITIAL_TRANSITION,
    Addition,
    DaveOpcode,
    DeliveryEffect,
    GroupChange,
    MlsGroup,
    Removal,
    SendBinary,
    SendJson,
    StartTimer,
    Transitions,
)
from rehearsal.errors import MlsError

_log = structlog.get_logger()

# protocol.md: "the voice gateway transition timeout", roughly two seconds.
TRANSITION_TIMEOUT_S = 2.0
# A batch that nobody commits in this time is proposed again. Each attempt waits twice as long as the attempt before, so
# that even a slow machine commits in time at last.
COMMIT_TIMEOUT_S = 2.0
_MAX_COMMIT_TIMEOUT_S = 64.0
# Op 24 names this epoch when the clients must make a new group.
_NEW_GROUP = 1


class DeliveryService:
    """The encryption group of one voice channel. Not thread-safe. `version`: of the protocol; 0: no encryption.

    `several_batches`: a change is proposed at once, though a batch is open (the fault of this name).
    """

    def __init__(self, channel_id: int, *, version: int = 1) -> None:
        self._sender = mls.ExternalSender(channel_id)
        self._group = MlsGroup()
        self._connected: dict[int, None] = {}  # in order of arrival
        self._key_packages: dict[int, bytes] = {}  # of pending members
        self._transitions = Transitions()
        self._batches = 0
        self._ignored_batches = 0  # since the last commit
        self._group_replaces_another = False
        self._downgrading: int | None = None
        self.version = version
        self.several_batches = False

    @property
    def epoch(self) -> int:
        """The group's epoch; 0 while there is no established group."""
        return self._group.epoch

    @property
    def leaves(self) -> dict[int, int]:
        """The group's members: user id -> leaf index."""
        return self._group.members()

    @property
    def pending_transitions(self) -> tuple[int, ...]:
        """The ids of transitions that were announced and not executed yet."""
        return self._transitions.ids

    # --- events of clients -------------------------------------------------------------------------------------

    def connect(self, user_id: int) -> list[DeliveryEffect]:
        """Add a client that was sent the protocol version (op 4). It gets the external sender, and sends its key
        package next.
        """
        self._connected[user_id] = None
        return [SendBinary(user_id, DaveOpcode.EXTERNAL_SENDER, self._sender.package)]

    def disconnect(self, user_id: int) -> list[DeliveryEffect]:
        """Remove a client that left the voice channel, or whose connection will not come back."""
        self._connected.pop(user_id, None)
        self._transitions.gone(user_id)
        effects = self._forget(user_id)
        group = self._group
        sole = len(self._connected) == 1 and group.members().keys() == self._connected.keys()
        if sole and group.epoch and self.version:
            effects += self._reset_sole_member()
        else:
            effects += self._advance()
        return effects + self._execute_ready_transitions()

    def key_package(self, user_id: int, body: bytes) -> list[DeliveryEffect]:
        """Handle a client's request to be added (op 26)."""
        if self.version == 0 or user_id not in self._connected:
            return []
        effects = self._withdraw_addition(user_id)
        if user_id in self._group.leaves.values():
            # A member that sends another key package is removed and added again. Proposals that were sent to a client
            # before it was added stay valid, because they are in that client's local group.
            effects += self._forget(user_id)
        self._key_packages[user_id] = body
        return effects + self._advance()

    def commit(self, user_id: int, body: bytes) -> list[DeliveryEffect]:
        """Handle a client's commit of proposals (op 28). A commit that came too late or misses a proposal is dropped.

        Raises `MlsError` for bytes that are not a commit.
        """
        parts = mls.split_commit_welcome(body)
        group = self._group
        changes = group.outstanding.get(user_id, {})
        refusal = self._refusal(user_id, parts, changes)
        if refusal:
            _log.debug("commit_refused", user_id=user_id, reason=refusal, epoch=parts.epoch, current=group.epoch)
            return []
        if group.epoch == 0:
            group.leaves = {0: user_id}
            self._key_packages.pop(user_id, None)
        stayed, added = group.apply([changes[reference] for reference in parts.proposal_references])
        for user in added:
            self._key_packages.pop(user, None)
        return self._announce(parts, stayed, added)

    def transition_ready(self, user_id: int, transition_id: int) -> list[DeliveryEffect]:
        """Note that a client is ready for a transition (op 23)."""
        self._transitions.ready(user_id, transition_id)
        return self._execute_ready_transitions()

    def invalid_commit(self, user_id: int) -> list[DeliveryEffect]:
        """Remove a client that could not process a commit or welcome (op 31), and add it again."""
        if self.version == 0 or user_id not in self._connected:
            return []
        return self._forget(user_id) + self._advance()

    # --- timers ------------------------------------------------------------------------------------------------

    def transition_timed_out(self, transition_id: int) -> list[DeliveryEffect]:
        """Execute the transition without the clients that never reported ready."""
        self._transitions.overdue(transition_id)
        return self._execute_ready_transitions()

    def commit_timed_out(self, batch: int) -> list[DeliveryEffect]:
        """Propose a batch again that nobody committed in time. If nobody commits the second batch either, make a new
        group.

        Without this timeout, a member whose client hangs would keep all new clients out for ever.
        """
        group = self._group
        # Before there is a group, only clients that have sent a key package can commit.
        committers = [
            user
            for user, changes in group.outstanding.items()
            if changes and (group.epoch or user in self._key_packages)
        ]
        if batch != self._batches or not committers:
            return []
        self._ignored_batches += 1
        if group.epoch and self._ignored_batches == 1:
            return self._revoke(committers) + self._advance()
        _log.info("group_without_committers", epoch=group.epoch, members=len(group.members()))
        return self.recreate()

    # --- decisions of the voice gateway ------------------------------------------------------------------------

    def downgrade(self) -> list[DeliveryEffect]:
        """Announce transport-only encryption (version 0) to everybody."""
        if self.version == 0:
            return []
        self.version = 0
        self._group_replaces_another = True
        transition = self._downgrading = self._transitions.announce(self._connected)
        data = {"protocol_version": 0, "transition_id": transition}
        effects: list[DeliveryEffect] = [
            SendJson(user, DaveOpcode.PREPARE_TRANSITION, data) for user in self._connected
        ]
        return [*effects, StartTimer(TRANSITION_TIMEOUT_S, partial(self.transition_timed_out, transition))]

    def upgrade(self) -> list[DeliveryEffect]:
        """Announce version 1 again, and make all clients create a new group."""
        if self.version == 1:
            return []
        self.version = 1
        if self._downgrading is not None:
            self._transitions.call_off(self._downgrading)
            self._downgrading = None
        return self.recreate()

    def recreate(self) -> list[DeliveryEffect]:
        """Make all clients create the group again (op 24 with epoch 1)."""
        if self.version == 0:
            return []
        self._group_replaces_another = True
        self._group = MlsGroup()
        self._key_packages.clear()
        return [self._prepare_epoch(user) for user in self._connected]

    # --- helpers -----------------------------------------------------------------------------------------------

    def _refusal(self, user_id: int, parts: mls.CommitWelcome, changes: dict[bytes, GroupChange]) -> str:
        """Return the reason to refuse a commit, or '' to accept it (protocol.md, "Voice Gateway Commit Validity")."""
        group = self._group
        if self.version == 0:
            return "no encryption now"
        if parts.epoch != group.epoch:
            return "another epoch"
        leaf = group.members().get(user_id) if group.epoch else 0
        if leaf is None or parts.committer_leaf != leaf:
            return "not that member's leaf"
        if not changes or set(parts.proposal_references) != set(changes):
            return "not the proposals that were broadcast"
        if not parts.welcome and any(isinstance(change, Addition) for change in changes.values()):
            return "no welcome for whom it adds"
        return ""

    def _announce(self, parts: mls.CommitWelcome, stayed: list[int], added: list[int]) -> list[DeliveryEffect]:
        """Start the next epoch: send the commit to the former members, and the welcome to the added clients."""
        group = self._group
        initial = group.epoch == 0 and not self._group_replaces_another
        transition = INITIAL_TRANSITION if initial else self._transitions.announce(group.members())
        self._group_replaces_another = False
        group.epoch += 1
        self._ignored_batches = 0
        group.outstanding.clear()
        prefix = struct.pack(">H", transition)
        effects: list[DeliveryEffect] = [
            SendBinary(user, DaveOpcode.ANNOUNCE_COMMIT, prefix + parts.commit) for user in stayed
        ]
        effects += [SendBinary(user, DaveOpcode.WELCOME, prefix + parts.welcome) for user in added]
        if transition != INITIAL_TRANSITION:
            effects.append(StartTimer(TRANSITION_TIMEOUT_S, partial(self.transition_timed_out, transition)))
        _log.debug("epoch_started", epoch=group.epoch, members=len(group.members()), transition_id=transition)
        return effects + self._advance()

    def _advance(self) -> list[DeliveryEffect]:
        """Propose the changes that are not proposed yet, unless a batch is still open."""
        if self.version == 0:
            return []
        group = self._group
        if group.epoch and not group.members():
            # No member is left to commit, so the pending clients make a new group.
            group = self._group = MlsGroup()
        if group.epoch == 0:
            offers = [effect for user in self._connected for effect in self._offer(user)]
            return [*offers, self._commit_timer()] if offers else []
        if any(group.outstanding.values()) and not self.several_batches:
            return []
        changes: list[GroupChange] = [Removal(leaf) for leaf in sorted(group.stale)]
        # If a client's old leaf is still in the group, the client is added only after the commit that removes that
        # leaf.
        still_there = set(group.leaves.values())
        changes += self._additions(besides=still_there)
        open_changes = {each for proposed in group.outstanding.values() for each in proposed.values()}
        changes = [each for each in changes if each not in open_changes]
        if not changes:
            return []
        signed = {change: self._sign(change) for change in changes}
        proposed = {proposal.reference: change for change, proposal in signed.items()}
        body = mls.append_proposals([proposal.message for proposal in signed.values()])
        effects: list[DeliveryEffect] = []
        for user in group.members():
            group.outstanding.setdefault(user, {}).update(proposed)
            effects.append(SendBinary(user, DaveOpcode.PROPOSALS, body))
        return [*effects, self._commit_timer()]

    def _commit_timer(self) -> StartTimer:
        self._batches += 1
        patience_s = min(COMMIT_TIMEOUT_S * 2**self._ignored_batches, _MAX_COMMIT_TIMEOUT_S)
        return StartTimer(patience_s, partial(self.commit_timed_out, self._batches))

    def _offer(self, user_id: int) -> list[DeliveryEffect]:
        """Propose to `user_id` the additions that were not proposed to it yet. Used only before there is a group."""
        proposed = self._group.proposed_additions(user_id)
        outstanding = self._group.outstanding.setdefault(user_id, {})
        messages: list[bytes] = []
        for change in self._additions(besides=proposed | {user_id}):
            proposal = self._sign(change)
            outstanding[proposal.reference] = change
            messages.append(proposal.message)
        return [SendBinary(user_id, DaveOpcode.PROPOSALS, mls.append_proposals(messages))] if messages else []

    def _additions(self, *, besides: set[int]) -> list[Addition]:
        waiting = self._key_packages.items()
        return [Addition(user, package) for user, package in waiting if user not in besides]

    def _sign(self, change: GroupChange) -> mls.Proposal:
        if isinstance(change, Addition):
            return self._sender.add(self._group.epoch, change.key_package)
        return self._sender.remove(self._group.epoch, change.leaf)

    def _forget(self, user_id: int) -> list[DeliveryEffect]:
        """Remove all state of a client: its key package, its leaf, and the proposals sent to it and about it."""
        group = self._group
        group.outstanding.pop(user_id, None)
        group.stale |= {leaf for leaf, user in group.leaves.items() if user == user_id}
        return self._withdraw_addition(user_id)

    def _withdraw_addition(self, user_id: int) -> list[DeliveryEffect]:
        """Remove a client's key package, and revoke the proposals that contain it."""
        self._key_packages.pop(user_id, None)
        group = self._group
        return self._revoke([user for user in group.outstanding if user_id in group.proposed_additions(user)])

    def _revoke(self, users: Iterable[int]) -> list[DeliveryEffect]:
        """Revoke all proposals sent to `users`. The docstring of the module explains why the whole batch is revoked."""
        effects: list[DeliveryEffect] = []
        for user in users:
            references = list(self._group.outstanding.pop(user))
            effects.append(SendBinary(user, DaveOpcode.PROPOSALS, mls.revoke_proposals(references)))
        return effects

    def _reset_sole_member(self) -> list[DeliveryEffect]:
        """Make the last member start a new group (protocol.md, "Sole member reset")."""
        (user,) = self._connected
        self._group = MlsGroup()
        self._key_packages.clear()
        self._transitions.clear()
        executed = {"protocol_version": self.version, "transition_id": INITIAL_TRANSITION}
        return [self._prepare_epoch(user), SendJson(user, DaveOpcode.PREPARE_TRANSITION, executed)]

    def _prepare_epoch(self, user_id: int) -> SendJson:
        data = {"protocol_version": self.version, "epoch": _NEW_GROUP}
        return SendJson(user_id, DaveOpcode.PREPARE_EPOCH, data)

    def _execute_ready_transitions(self) -> list[DeliveryEffect]:
        effects: list[DeliveryEffect] = []
        for transition_id, recipients in self._transitions.take_ready():
            data = {"transition_id": transition_id}
            present = [user for user in recipients if user in self._connected]
            effects += [SendJson(user, DaveOpcode.EXECUTE_TRANSITION, data) for user in present]
            if transition_id == self._downgrading:
                self._downgrading = None
                self._group = MlsGroup()
                self._key_packages.clear()
        return effects


def read_transition_id(data: object) -> int:
    """Return the transition id in the data of op 23 or 31. Raises `MlsError` for anything else."""
    transition_id = data.get("transition_id") if isinstance(data, dict) else None
    if not isinstance(transition_id, int) or isinstance(transition_id, bool):
        raise MlsError("A DAVE message names no transition_id.")
    return transition_id
