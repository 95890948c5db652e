"""What a server has chosen arrives in the room's process, and what the room changes goes back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bot.guild import GuildChoice, Silence, VoiceMode
from bot.participation.costs import Cost, CostCeiling, CostLedger
from bot.participation.guild_participation import GuildParticipation
from bot.participation.session_consent import SessionConsent
from bot.remote.messages.frames import Head, content_of, frame_of, head_of
from bot.remote.messages.participation_state import apply_participation, participation_state
from bot.remote.messages.room_messages import ChangeServers, OpenRoom, StoreSilence
from bot.remote.messages.wire_error import OtherProcessError
from bot.remote.room_side.replicated_guild import ReplicatedChoices, ReplicatedServerSettings
from bot.server_settings import DEFAULTS, ServerSettings, ServerSettingsBook, to_json
from compaction.errors import StoreError
from compaction.model import Mode

if TYPE_CHECKING:
    from bot.remote.link.handlers import Handlers
    from bot.remote.messages.frames import Notice, Request

GUILD, ADA, BO = 10, 1, 2


class FakeGateway:
    """Keeps what it is asked. `fails`: answers nothing."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.fails = False
        self.is_open = True

    @property
    def handlers(self) -> Handlers:
        raise NotImplementedError

    async def ask(self, request: Request[Any], *, within_s: float) -> Any:
        """Keep the request."""
        del within_s
        if self.fails:
            raise OtherProcessError("The gateway is away.")
        self.asked.append(request)

    def tell(self, notice: Notice) -> None:
        """Keep the notice."""
        self.asked.append(notice)


def a_guild(**more: Any) -> GuildParticipation:
    """Return a server's participation."""
    return GuildParticipation(GUILD, VoiceMode.ENGAGED, ("Roomtone",), CostLedger(CostCeiling()), **more)


def test_what_commands_change_applies_in_the_room() -> None:
    """Mode, names, silence and opt-outs; consent only for the session in which it was given."""
    told = participation_state(
        a_guild(
            silence=Silence(always=True),
            opted_out=frozenset({BO}),
            consent=SessionConsent("evening", agreed=frozenset({ADA})),
        )
    )
    room = a_guild(asks=True, consent=SessionConsent("evening"))
    apply_participation(told, room)
    assert (room.silence, room.opted_out) == (Silence(always=True), frozenset({BO}))
    assert not room.excludes(ADA)
    apply_participation(replace(told, consented_in="another"), room)
    assert room.excludes(ADA)
    assert room.asks


def test_choices_and_costs_arrive_as_they_were() -> None:
    """Whatever a server has chosen, and what its last hour has cost."""
    choice = GuildChoice(
        Mode.ROLLING,
        False,
        VoiceMode.NAME,
        ("Otto", "Jeeves"),
        Silence(session_id="s", until=9.0),
        "Speak like a pirate.",
    )
    ledger = CostLedger(CostCeiling())
    ledger.add(Cost(1, 20, 3.5), now=100.0)
    told = OpenRoom(GUILD, 5, None, participation_state(a_guild()), choice, "{}", tuple(ledger.ages(130.0)), 7)
    _, body = head_of(frame_of(Head("ask", 1, "OpenRoom"), told, OpenRoom))
    arrived: OpenRoom = content_of(body, OpenRoom)
    assert arrived.choice == choice
    assert arrived.costs == ((30.0, Cost(1, 20, 3.5)),)


@pytest.mark.asyncio
async def test_silence_that_was_asked_for_aloud_is_stored_by_the_gateway_process() -> None:
    """The room itself stores nothing: another choice, made meanwhile by a command, would be lost."""
    gateway = FakeGateway()
    choices = ReplicatedChoices(gateway)
    choices.told = GuildChoice(persona="Speak like a pirate.")
    await choices.choose(GUILD, lambda _: GuildChoice(silence=Silence(session_id="s")), by=ADA)
    assert gateway.asked == [StoreSilence(Silence(session_id="s"), ADA)]
    assert await choices.choice(GUILD) == GuildChoice(silence=Silence(session_id="s"), persona="Speak like a pirate.")
    gateway.fails = True
    with pytest.raises(StoreError, match="away"):
        await choices.choose(GUILD, lambda _: GuildChoice(), by=ADA)


@pytest.mark.asyncio
async def test_a_server_s_settings_are_told_and_changed() -> None:
    """What managers choose applies at once and is told to who watches; what the room changes is stored elsewhere."""
    gateway = FakeGateway()
    store = ReplicatedServerSettings(gateway)
    book, seen = ServerSettingsBook(store), list[tuple[int, ServerSettings]]()
    book.watch(lambda guild_id, settings: seen.append((guild_id, settings)))
    chosen = replace(DEFAULTS, language="de")
    book.apply(GUILD, store.tell(GUILD, to_json(chosen)))
    assert (book.of(GUILD), seen) == (chosen, [(GUILD, chosen)])
    shorter = replace(chosen, live_message=False)
    await book.change(GUILD, lambda _: shorter, by=None)
    assert gateway.asked == [ChangeServers(to_json(shorter))]
    gateway.fails = True
    with pytest.raises(StoreError):
        await book.change(GUILD, lambda _: chosen, by=None)
    assert book.of(GUILD) == shorter
