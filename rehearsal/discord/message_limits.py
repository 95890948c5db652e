"""What Discord refuses: texts, embeds and choices that are too long or too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from rehearsal.discord.payloads import Json


class RefusedError(LocalDiscordError):
    """Refuses a bot's request with Discord's HTTP status and error code."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


_MAX_CHARACTERS = 2000


def new_message_fields(data: Json) -> Json:
    """Return what a new message has besides its text. Raises `RefusedError` for one that Discord would refuse."""
    check_message(data)
    fields = {key: data[key] for key in ("embeds", "components", "attachments", "flags") if data.get(key)}
    if not data.get("content") and not fields.keys() - {"flags"}:
        raise RefusedError(400, 50006, "Cannot send an empty message")
    return fields


def check_message(data: Json) -> None:
    """Raise `RefusedError` if Discord would refuse the text or the embeds of a new or edited message."""
    check_content(data.get("content"))
    check_embeds(data.get("embeds"))


def check_content(content: object) -> None:
    """Raise `RefusedError` for a text that Discord would refuse."""
    if content is None:
        return
    if not isinstance(content, str) or len(content) > _MAX_CHARACTERS:
        raise RefusedError(400, 50035, f"Invalid Form Body: content must be {_MAX_CHARACTERS} or fewer in length.")


_MOST_EMBEDS = 10
_MOST_EMBED_CHARACTERS = 6000
# The limits of one embed, by field.
_EMBED_LIMITS = {"title": 256, "description": 4096}
_FIELD_LIMITS = {"name": 256, "value": 1024}
_MOST_FIELDS = 25


def check_embeds(embeds: object) -> None:
    """Raise `RefusedError` for embeds that Discord would refuse."""
    if not embeds:
        return
    if not isinstance(embeds, list) or len(embeds) > _MOST_EMBEDS:
        raise RefusedError(400, 50035, f"Invalid Form Body: embeds must be {_MOST_EMBEDS} or fewer in length.")
    total = 0
    for embed in embeds:
        fields = embed.get("fields") or []
        if len(fields) > _MOST_FIELDS:
            raise RefusedError(400, 50035, f"Invalid Form Body: fields must be {_MOST_FIELDS} or fewer in length.")
        texts = [(embed.get(key) or "", limit, key) for key, limit in _EMBED_LIMITS.items()]
        texts += [(each.get(key) or "", limit, key) for each in fields for key, limit in _FIELD_LIMITS.items()]
        if any(not each.get(key) for each in fields for key in _FIELD_LIMITS):
            raise RefusedError(400, 50035, "Invalid Form Body: a field needs a name and a value.")
        for text, limit, key in texts:
            if len(text) > limit:
                raise RefusedError(400, 50035, f"Invalid Form Body: {key} must be {limit} or fewer in length.")
        total += sum(len(text) for text, _, _ in texts) + len((embed.get("footer") or {}).get("text") or "")
    if total > _MOST_EMBED_CHARACTERS:
        raise RefusedError(400, 50035, f"Invalid Form Body: embeds exceed {_MOST_EMBED_CHARACTERS} characters.")


_MOST_CHOICES = 25
_MAX_CHOICE_CHARACTERS = 100


def check_choices(choices: object) -> list[Json]:
    """Return the choices that a bot suggests. Raises `RefusedError` for those that Discord would refuse."""
    found = choices if isinstance(choices, list) else []
    if len(found) > _MOST_CHOICES:
        raise RefusedError(400, 50035, f"Invalid Form Body: choices must be {_MOST_CHOICES} or fewer in length.")
    if any(not 1 <= len(each["name"]) <= _MAX_CHOICE_CHARACTERS for each in found):
        raise RefusedError(400, 50035, "Invalid Form Body: the name of a choice has 1 to 100 characters.")
    return found
