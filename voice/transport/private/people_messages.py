"""The voice gateway's messages about people: who is in the call, and which SSRC is whose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discord.gateway import DiscordVoiceWebSocket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voice.transport.receiver import Receiver


def tell_of_people(msg: Mapping[str, Any], receiver: Receiver, *, own_id: int, replayed: bool = False) -> None:
    """Tell `receiver` what a message says about people; other messages say nothing. `own_id`: the bot's user id.
    `replayed`: it was missed and is sent again after a resumption, so who began to speak then may be done long since.

    A malformed message raises what reading it raises (`KeyError`, `ValueError`, …), which the websocket survives.
    """
    data = msg.get("d") or {}
    match msg.get("op"):
        case DiscordVoiceWebSocket.CLIENTS_CONNECT:
            receiver.joined({_snowflake(user_id) for user_id in data["user_ids"]} - {own_id})
        case DiscordVoiceWebSocket.SPEAKING if data.get("user_id") is not None:
            announced = bool(data.get("speaking")) and not replayed
            receiver.speaks(int(data["ssrc"]), _snowflake(data["user_id"]), announced=announced)
        case DiscordVoiceWebSocket.CLIENT_CONNECT if data.get("user_id") is not None and data.get("audio_ssrc"):
            # Op 12 announces video, and names the SSRC of the audio too.
            receiver.speaks(int(data["audio_ssrc"]), _snowflake(data["user_id"]), announced=False)
        case DiscordVoiceWebSocket.CLIENT_DISCONNECT:
            receiver.left(_snowflake(data["user_id"]))
        case DiscordVoiceWebSocket.DAVE_EXECUTE_TRANSITION:
            receiver.rekeyed()


def _snowflake(value: Any) -> int:
    """Return an id of Discord. Raises `ValueError` or `TypeError` for a value that is none.

    davey takes 64 bits, and one member with another id would make every frame of an unknown sender fail.
    """
    number = int(value)
    if not 0 <= number < 2**64:
        raise ValueError("not an id")
    return number
