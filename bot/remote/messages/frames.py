"""Messages between two processes as text: a frame is a line that says what it is, and a line of JSON with the content.

A message is a frozen dataclass. A `Request` is answered, a `Notice` is not. Whatever comes in is checked against the
annotations, strictly: a word is no number, and neither is NaN, infinity, or what two additions make infinite. Counters
and clocks of this process would keep those for good, and what waits to be stored an id that no database takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, SchemaValidator

from bot.remote.messages.wire_error import OtherProcessError
from bot.store.number_range import LARGEST_NUMBER
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

AnswerT = TypeVar("AnswerT")

# A frame. The longest are files: what somebody posted (up to 512 KiB), and a transcript of many hours (a few MiB).
MOST_BYTES = 16 * 1024 * 1024
# Values of one message, counted by the commas in its JSON, also those in texts. The checker keeps 500 bytes for each
# that is wrong, so 16 MiB of them would take 7 GB, and end the gateway process with all rooms. What is long in a
# message is words, with a comma in each sentence, or a file, which has none.
MOST_PARTS = 500_000
# Wrong values that are described; that takes longer than to find them.
_MOST_DESCRIBED = 20
TOO_LARGE = Text("What I wanted to send to another process of this bot is too large ({size} of {most} MiB).")
# The longest line that says what a frame is.
_HEAD_CHARS = 200
# Larger than any time, size or count of a message, and so small that sums and products of such numbers stay finite.
MOST_NUMBER: Final = 2.0**53


class Notice:
    """Marks a message that is told and not answered. Subclasses are frozen dataclasses."""

    __slots__ = ()


class Request(Generic[AnswerT]):
    """Marks a message that is answered with the type in brackets. Subclasses are frozen dataclasses."""

    __slots__ = ()


class MalformedError(Exception):
    """What came in is no message, or not the one that was expected. It names no content."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a frame is. `number`: of the question. `name`: the class of what is asked or told."""

    kind: Literal["ask", "answer", "error", "tell"]
    number: int = 0
    name: str = ""


def answer_type(request: type[Request[Any]]) -> Any:
    """Return the type with which a request is answered. Raises `TypeError` for a class that does not name one."""
    for base in getattr(request, "__orig_bases__", ()):
        if get_origin(base) is Request:
            return get_args(base)[0]
    raise TypeError(f"{request.__name__} does not say how it is answered")


def frame_of(head: Head, content: object, kind: Any) -> str:
    """Return a frame. `kind`: the type of `content`. Raises `OtherProcessError` if it is too large, and
    `MalformedError` for content of another type or of too many parts.
    """
    try:
        body = adapter_of(kind).dump_json(content, warnings="error")
    except PydanticSerializationError:
        # The library's message quotes the content.
        raise MalformedError(f"{head.name} cannot be written as its type") from None
    if len(body) > MOST_BYTES - _HEAD_CHARS:
        raise OtherProcessError(TOO_LARGE.fill(size=len(body) >> 20, most=MOST_BYTES >> 20))
    text = body.decode()
    check_parts(text)
    return f"{adapter_of(Head).dump_json(head).decode()}\n{text}"


def head_of(frame: str) -> tuple[Head, str]:
    """Return what a frame is, and its content as JSON. Raises `MalformedError`."""
    line, found, _ = frame[: _HEAD_CHARS + 1].partition("\n")
    if not found:
        raise MalformedError("a frame without a head")
    head: Head = content_of(line, Head)
    return head, frame[len(line) + 1 :]


def content_of(body: str, kind: Any) -> Any:
    """Return checked content. Raises `MalformedError`."""
    check_parts(body)
    try:
        return adapter_of(kind).validate_json(body, strict=True)
    except ValidationError as error:
        raise MalformedError(f"{getattr(kind, '__name__', kind)} is wrong in{_places(error)}") from None


def check_parts(json: str) -> None:
    """Raise `MalformedError` for JSON of more parts than any message has, before any of them is looked at."""
    if json.count(",") > MOST_PARTS:
        raise MalformedError("a message of too many parts")


def _places(error: ValidationError) -> str:
    """Return where content is wrong. The library's message quotes the content."""
    if error.error_count() > _MOST_DESCRIBED:
        return f" {error.error_count()} places"
    return ": " + ", ".join(".".join(map(str, each["loc"])) or "all of it" for each in error.errors()[:3])[:200]


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return what checks and writes a type. Making one takes milliseconds."""
    return new_adapter(kind)


def new_adapter(kind: Any, *, names: Mapping[str, Any] | None = None) -> TypeAdapter[Any]:
    """Make what checks and writes a type. It refuses numbers beyond `MOST_NUMBER`, and whole ones that the database
    cannot store, wherever they are in it.

    `names`: what annotations mean that their modules import for type checking alone.
    """
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    if names is not None:
        adapter.rebuild(force=True, _types_namespace=dict(names))
    # pydantic has no setting for this, and takes none for a dataclass.
    _bound_numbers(adapter.core_schema)
    adapter.validator = SchemaValidator(adapter.core_schema)
    return adapter


def _bound_numbers(schema: Any) -> None:
    """Bound each number in a core schema of pydantic, or in a part of one."""
    match schema:
        case {"type": "float"}:
            bounds = {"ge": -MOST_NUMBER, "le": MOST_NUMBER, "allow_inf_nan": False}
            schema |= bounds | schema
        case {"type": "int"}:
            # An id may be larger than `MOST_NUMBER`.
            schema |= {"ge": -LARGEST_NUMBER, "le": LARGEST_NUMBER} | schema
        case dict():
            for part in schema.values():
                _bound_numbers(part)
        case list() | tuple():
            for part in schema:
                _bound_numbers(part)
