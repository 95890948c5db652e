"""The mark of a gateway process: one with the same mark may go on with its rooms, which it would open alike."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import fields
from typing import TYPE_CHECKING

from pydantic import SecretStr

from bot.remote.link.hello import PROTOCOL_VERSION, release_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.wiring.settings import BotSettings


def room_mark(settings: BotSettings, command: Sequence[str]) -> str:
    """Return a mark of the version, of all settings and of the command that starts rooms' processes.

    Keys and passwords are in it too, so the bot's token, which rooms do not have, keeps them from being guessed.
    """
    sections = {field.name: getattr(settings, field.name).model_dump() for field in fields(settings)}
    content = json.dumps([release_here(), PROTOCOL_VERSION, list(command), sections], default=_plain, sort_keys=True)
    token = settings.discord.token
    key = "" if token is None else token.get_secret_value()
    return hmac.new(key.encode(), content.encode(), hashlib.sha256).hexdigest()


def _plain(value: object) -> object:
    """Return a value of a setting as JSON has it, the same in each process."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return str(value)
