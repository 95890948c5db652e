"""What Discord refuses of messages: texts, embeds, buttons and choices that are too long or too many, and big files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.errors import LocalDiscordError

if TYPE_CHECKING:
    from rehearsal.discord.guild.payloads import Json


class RefusedError(LocalDiscordError):
    """Refuses a bot's request with Discord's HTTP status and error code."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


# The files of one message on a server without boosts. An interaction tells it as `attachment_size_limit`.
MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
_MAX_CHARACTERS = 2000
_EMPTY = (400, 50006, "Cannot send an empty message")
_TOO_LARGE = (413, 40005, "Request entity too large")
# What a message has besides its flags, and what each of it is when it is taken away.
_PARTS: dict[str, object] = {"content": "", "embeds": [], "components": [], "attachments": []}


def new_message_fields(data: Json) -> Json:
    """Return what a new message has besides its text. Raises `RefusedError` for one that Discord would refuse."""
    check_message(data)
    fields = {key: data[key] for key in ("embeds", "components", "attachments", "flags") if data.get(key)}
    if not data.get("content") and not fields.keys() - {"flags"}:
        raise RefusedError(*_EMPTY)
    return fields


def edit_message(message: Json, data: Json) -> None:
    """Change what `data` names of a message. A part that is null is taken away, as on Discord.

    Raises `RefusedError`, and changes nothing, if Discord would refuse the edit or nothing would be left.
    """
    check_message(data)
    changes = {key: data[key] or empty for key, empty in _PARTS.items() if key in data}
    if not any({**message, **changes}[key] for key in _PARTS):
        raise RefusedError(*_EMPTY)
    message.update(changes)


def check_message(data: Json) -> None:
    """Raise `RefusedError` if Discord would refuse a part of a new or edited message."""
    check_content(data.get("content"))
    check_embeds(data.get("embeds"))
    check_components(data.get("components"))
    files = data.get("attachments") or []
    if sum(file.get("size", 0) for file in files) > MAX_ATTACHMENT_BYTES:
        raise RefusedError(*_TOO_LARGE)


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
_FOOTER_CHARACTERS = 2048
_AUTHOR_CHARACTERS = 256
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
        texts.append(((embed.get("footer") or {}).get("text") or "", _FOOTER_CHARACTERS, "footer"))
        texts.append(((embed.get("author") or {}).get("name") or "", _AUTHOR_CHARACTERS, "author"))
        if any(not each.get(key) for each in fields for key in _FIELD_LIMITS):
            raise RefusedError(400, 50035, "Invalid Form Body: a field needs a name and a value.")
        _check_texts(texts)
        total += sum(len(text) for text, _, _ in texts)
    if total > _MOST_EMBED_CHARACTERS:
        raise RefusedError(400, 50035, f"Invalid Form Body: embeds exceed {_MOST_EMBED_CHARACTERS} characters.")


_ACTION_ROW = 1
_MOST_ROWS = 5
_MOST_IN_A_ROW = 5
_MAX_LABEL = 80
_MAX_CUSTOM_ID = 100


def check_components(components: object) -> None:
    """Raise `RefusedError` for rows of buttons that Discord would refuse."""
    if not components:
        return
    if not isinstance(components, list) or len(components) > _MOST_ROWS:
        raise RefusedError(400, 50035, f"Invalid Form Body: components must be {_MOST_ROWS} or fewer in length.")
    seen: set[str] = set()
    for row in components:
        inside = row.get("components") or []
        if row.get("type") != _ACTION_ROW or not 1 <= len(inside) <= _MOST_IN_A_ROW:
            raise RefusedError(400, 50035, f"Invalid Form Body: a row has 1 to {_MOST_IN_A_ROW} components.")
        for each in inside:
            label, custom_id = each.get("label") or "", each.get("custom_id")
            if len(label) > _MAX_LABEL:
                raise RefusedError(400, 50035, f"Invalid Form Body: label must be {_MAX_LABEL} or fewer in length.")
            if custom_id is None:
                continue
            if not 1 <= len(custom_id) <= _MAX_CUSTOM_ID:
                raise RefusedError(400, 50035, f"Invalid Form Body: custom_id has 1 to {_MAX_CUSTOM_ID} characters.")
            _check_menu(each)
            if custom_id in seen:
                raise RefusedError(400, 50035, "Invalid Form Body: Component custom id cannot be duplicated.")
            seen.add(custom_id)


_MENU_LIMITS = {"label": 100, "value": 100, "description": 100}
_MAX_PLACEHOLDER = 150
_MAX_WINDOW_TITLE, _MAX_WINDOW_LABEL, _MAX_WINDOW_ABOUT = 45, 45, 100


def _check_menu(menu: Json) -> None:
    options = menu.get("options") or []
    texts = [(each.get(key) or "", limit, key) for each in options for key, limit in _MENU_LIMITS.items()]
    texts.append((menu.get("placeholder") or "", _MAX_PLACEHOLDER, "placeholder"))
    _check_texts(texts)
    if len(options) > _MOST_CHOICES or sum(bool(each.get("default")) for each in options) > menu.get("max_values", 1):
        raise RefusedError(400, 50035, f"Invalid Form Body: a menu has at most {_MOST_CHOICES} options.")


def check_window(window: Json) -> None:
    """Raise `RefusedError` for a window (modal) that Discord would refuse."""
    texts = [(window.get("title") or "", _MAX_WINDOW_TITLE, "title")]
    for label in window.get("components") or []:
        texts.append((label.get("label") or "", _MAX_WINDOW_LABEL, "label"))
        texts.append((label.get("description") or "", _MAX_WINDOW_ABOUT, "description"))
    _check_texts(texts)


def _check_texts(texts: list[tuple[str, int, str]]) -> None:
    for text, limit, key in texts:
        if len(text) > limit:
            raise RefusedError(400, 50035, f"Invalid Form Body: {key} must be {limit} or fewer in length.")


_MOST_CHOICES = 25
_MAX_CHOICE_CHARACTERS = 100


def check_choices(choices: object) -> list[Json]:
    """Return the choices that a bot suggests. Raises `RefusedError` for those that Discord would refuse."""
    found = choices if isinstance(choices, list) else []
    if len(found) > _MOST_CHOICES:
        raise RefusedError(400, 50035, f"Invalid Form Body: choices must be {_MOST_CHOICES} or fewer in length.")
    for each in found:
        for text in (each["name"], each["value"]):
            if isinstance(text, str) and not 1 <= len(text) <= _MAX_CHOICE_CHARACTERS:
                raise RefusedError(
                    400, 50035, f"Invalid Form Body: a choice has 1 to {_MAX_CHOICE_CHARACTERS} characters."
                )
    return found
