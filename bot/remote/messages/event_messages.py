"""The room's events as messages. The recorded sound of utterances does not go along."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, get_args

from pydantic import PlainSerializer, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from bot import events
from bot.remote.messages.frames import MalformedError, check_parts, new_adapter
from bot.remote.messages.room_messages import EventTold
from bot.remote.messages.wire_text import WireText
from compaction import model
from compaction.payload import PayloadPart
from voice.asr.port import Recognition
from voice.asr.second_pass import Doubt
from voice.audio import NO_SOUND
from voice.listening.utterance import Utterance
from voice.queue_figures import QueueFigures

_CLASSES: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in get_args(events.Event)}
# The events' modules import these for type checking alone.
_NAMES: Final[dict[str, Any]] = {
    **vars(model),
    "Doubt": Doubt,
    "Mapping": Mapping,
    "PayloadPart": PayloadPart,
    "Pcm": Annotated[Any, PlainSerializer(lambda _: None), PlainValidator(lambda _: NO_SOUND)],
    "QueueFigures": QueueFigures,
    "Recognition": Recognition,
    "Text": WireText,
    "Utterance": Utterance,
}


def event_message(event: events.Event) -> EventTold:
    """Return an event as a message. Half of a character, which a model may write, becomes the replacement character."""
    kind = type(event).__name__
    adapter = _adapter(kind)
    try:
        return EventTold(kind, adapter.dump_json(event).decode())
    except PydanticSerializationError:
        told = json.dumps(adapter.dump_python(event, mode="json"), ensure_ascii=False)
        return EventTold(kind, told.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def event_in(message: EventTold) -> events.Event:
    """Return the event in a message. Raises `MalformedError`."""
    if message.kind not in _CLASSES:
        raise MalformedError("an event that this process does not know")
    # Here too: in the message it is a text, in which a comma can be written in another way.
    check_parts(message.event)
    try:
        event: events.Event = _adapter(message.kind).validate_json(message.event, strict=True)
    except ValidationError as error:
        # The library's message quotes the content.
        raise MalformedError(f"{message.kind} has {error.error_count()} wrong values") from None
    return event


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return new_adapter(_CLASSES[kind], names=_NAMES)
