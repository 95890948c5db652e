"""Opens what runs the rooms of the bot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.health import DegradedPart
from bot.room.rooms import Rooms
from bot.room.session import Session
from bot.texts.text import Text
from bot.wiring.services import open_room_models, room_services
from bot.wiring.session_rejoining import end_open_session
from voice.transport.paced_sender import running_paced_sender

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from bot import events
    from bot.models.loaded_voices import LoadedVoices
    from bot.screen.screens import Screens
    from bot.wiring.bot_process import BotProcess
    from bot.wiring.recollection import Recollection
    from voice.transport.paced_sender import PacedSender


@dataclass(frozen=True, slots=True)
class OpenedRooms:
    """The rooms of this process. `paced_sender` sends their audio; None: they send it themselves. `device`: where their
    speech model runs, in a sentence; None: they have none.
    """

    rooms: Rooms
    paced_sender: PacedSender | None
    device: Text | None


async def open_rooms(
    stack: AsyncExitStack,
    process: BotProcess,
    recollection: Recollection,
    *,
    voices: LoadedVoices,
    screens: Screens,
    observe: events.Observer,
) -> OpenedRooms:
    """Load or connect on `stack` what rooms of this process share.

    Raises `BotError` or `VoiceError` when something needed is missing.
    """
    parts = process.parts
    models = await open_room_models(stack, parts, recollection.models)
    services = room_services(
        parts,
        models,
        recollection,
        participation=process.participation,
        voices=voices,
        show_live=process.dashboard.live.show,
        screens=screens,
        observe=observe,
        traces=process.traces,
    )
    rooms = Rooms(
        lambda place, listen: Session(place, services, listen),
        clock=parts.clock,
        servers=parts.stores.servers,
        end_session=partial(end_open_session, parts.stores.sessions, process.lock),
    )
    paced_sender = stack.enter_context(running_paced_sender())
    if paced_sender is not None:
        parts.metrics.health.add_check(partial(_paced_sender_problems, paced_sender))
    return OpenedRooms(rooms, paced_sender, models.device)


def _paced_sender_problems(paced_sender: PacedSender) -> list[DegradedPart]:
    what, instead = Text("The process that sends my voice"), Text("I send it myself, less evenly when I am busy")
    return [] if paced_sender.outage is None else [DegradedPart(what, instead, paced_sender.outage)]
