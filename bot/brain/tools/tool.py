"""Tools as values: name and description for the model, function, who may use it; and how a call is checked and run.

Whatever reaches a model as text may hold instructions: speech, files, screens, the answers of servers. So a tool runs
with the rights of the person who asked, whatever a prompt says, and one that does more than an answer does waits for
that person's press (`frozen_calls`).
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import jsonschema
import structlog
from jsonschema import Draft202012Validator
from referencing.jsonschema import DRAFT202012

from bot.texts.text import for_people, sentence_of
from compaction.errors import StoreError
from compaction.untrusted_text import mark_as_data
from voice.cancellation import is_being_cancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bot.channel.port import TypedMessage

log = structlog.get_logger()

# The names of our own tools, which no other tool has.
BUILT_IN_NAMES: Final = frozenset(
    {
        "memory_search", "recall_turns", "read_attachment", "read_attachment_of_others", "post_link", "look_at_screen",
        "be_quiet", "stop", "remind", "remind_in_chat", "missed",
    }
)  # fmt: skip
# About 2,000 tokens. The token budget cuts older outputs to less anyway.
MAX_CHARS = 6_000
# Listeners give up on a reply that waits longer for a tool.
TIMEOUT_S = 8.0

# Deeper arguments than any tool's: to copy, show and send a call takes a step on the stack for each level.
MOST_NESTED = 32
_MOST_PROBLEMS = 3
_PROBLEM_CHARS = 200
# About 6,000 tokens, which each prompt would pay for.
MOST_SCHEMA_CHARS = 20_000
# The rules for one argument that are checked here; all of ours are among them. Schemas come from MCP servers too, and
# references, patterns and rules for parts of a part can be made to take minutes, in which nobody is heard. Of those the
# server tells the model what is wrong.
_RULES = frozenset(
    {
        "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
        "minItems", "maxItems",
    }
)  # fmt: skip


class ToolError(Exception):
    """A tool failed. The message is a plain sentence for the model and holds no secret."""


class OutcomeUnknownError(ToolError):
    """It cannot be told whether a tool has done what it was called for: its server was asked and has not answered."""


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who asked the question. `present`: in the voice channel now, and not a bot. `roles`: ids of theirs.
    `reads_chat`: they may read what is in its chat. `typed`: the message in which they asked, if they did not say it.
    """

    user_id: int | None = None
    name: str = ""
    present: bool = False
    roles: frozenset[int] = frozenset()
    reads_chat: bool = False
    typed: TypedMessage | None = None


# The asker of an unasked reply, in which the bot speaks on its own.
NOBODY = Asker()


def anybody(_: Asker) -> bool:
    """Permit a tool for everybody, and also when the bot speaks unasked."""
    return True


def present(asker: Asker) -> bool:
    """Permit a tool, or what it found, to who is in the voice channel now."""
    return asker.present


def only(asker: Asker) -> Callable[[Asker], bool]:
    """Return what lets nobody but `asker` know something."""
    return lambda other: other.user_id == asker.user_id


@dataclass(frozen=True, slots=True)
class Result:
    """What a call returned. `knows`: returns whether somebody may know it."""

    text: str
    knows: Callable[[Asker], bool]


# What a model reads before the failure of a call that may have done something all the same.
UNSURE = "It is not known whether it was done. Say so, and do not try it again unless somebody asks for it. "
# How a call ended, for the log and for people.
ToolOutcome: TypeAlias = Literal[
    "unknown", "refused", "asked", "goes on", "answered", "failed", "lost", "timeout", "broken"
]
# Ends of calls that ran and were not answered. Of the last three nobody knows whether anything was done.
FAILURES: Final[frozenset[ToolOutcome]] = frozenset({"failed", "lost", "timeout", "broken"})


@dataclass(frozen=True, slots=True)
class RoomTool:
    """One tool. `parameters`: the JSON schema of its arguments. Two are equal if a press for one counts for the other.

    `call`: gets arguments that fit them; returns what the model reads and who may know it, or raises `ToolError`, which
    is for who asked alone. `asks`: each call waits
    until the person who asked has pressed *Do it*. `acts`: it does more than read, so it waits until its question is
    surely over. `once`: it may be called once for a question. `slow`: a call that
    takes longer than a reply waits goes on behind the talk (`frozen_calls`). `fix`: returns arguments that say what
    those of a model mean now, before anybody is asked; raises `ToolError`. `permits`: returns whether the tool may run
    for somebody; by default for who is in the voice channel now. `server`, `title`: the MCP server that has it, and its
    name there. `offered`: models are told of it. `lets`: what it lets the
    bot do, for its system prompt. `timeout_s`: time limit of a call.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    call: Callable[[Mapping[str, object]], Awaitable[Result]] = field(compare=False)
    asks: bool = True
    acts: bool = field(default=True, compare=False)
    once: bool = field(default=False, compare=False)
    slow: bool = field(default=False, compare=False)
    fix: Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]] | None = field(default=None, compare=False)
    permits: Callable[[Asker], bool] = field(default=present, compare=False)
    server: str = ""
    title: str = ""
    lets: str = field(default="", compare=False)
    timeout_s: float = field(default=TIMEOUT_S, compare=False)
    offered: bool = field(default=True, compare=False)

    def refusal(self, asker: Asker) -> str | None:
        """Return why it may not run for `asker`, as a sentence for the model, or None if it may."""
        if self.permits(asker) and (asker.present or not self.asks):
            return None
        return f"{self.name} is not allowed for who asked. Say so, and go on without it."

    async def run(self, arguments: Mapping[str, object], asker: Asker) -> tuple[ToolOutcome, Result]:
        """Call it for `asker` with arguments that fit its schema. Return how it ended and what the model reads: within
        bounds, and with what comes from outside marked as data. Each failure becomes a sentence. *Cancellation* cancels
        the call.
        """
        unsure = UNSURE if self.asks or self.server else ""
        try:
            async with asyncio.timeout(self.timeout_s):
                found = await self.call(arguments)
        except TimeoutError:
            late = f"{unsure}{self.name} took longer than {self.timeout_s:g} s and was given up."
            return "timeout", Result(late, self.permits)
        except (ToolError, StoreError) as error:
            said = self.as_data(for_people(sentence_of(error)))
            lost = isinstance(error, OutcomeUnknownError)
            return "lost" if lost else "failed", Result(unsure + said if lost else said, only(asker))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
                raise
            # A broken tool costs one result. The message of the exception is not logged: it may quote people.
            log.warning("tool_crashed", tool=self.name, error_class=type(error).__name__, exc_info=error)
            return "broken", Result(f"{unsure}{self.name} broke. Go on without it.", self.permits)
        return "answered", replace(found, text=self.as_data(found.text))

    def as_data(self, text: str) -> str:
        """Return a text that may come from outside, for example from an MCP server, as the model reads it."""
        return mark_as_data(self.name, text, max_chars=MAX_CHARS)


def read_arguments(written: str, schema: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that a model wrote as JSON. Raises `ToolError` with what to correct, for the model."""
    try:
        arguments = json.loads(written or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError("The arguments are not JSON. Write one JSON object.") from error
    if not isinstance(arguments, dict):
        raise ToolError("The arguments are not a JSON object. Write one, with the parameters as keys.")
    if _nests(arguments, MOST_NESTED):
        raise ToolError("The arguments are nested too deeply. Write them flatter.")
    properties, required = schema.get("properties"), schema.get("required")
    parameters = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    # Small models write null for each optional parameter.
    given = {
        name: _coerced(value, parameters.get(name))
        for name, value in arguments.items()
        if value is not None or name in needed
    }
    checked: dict[str, object] = {
        "required": needed,
        "additionalProperties": schema.get("additionalProperties") is not False or "patternProperties" in schema,
        "properties": {
            name: {rule: value for rule, value in each.items() if rule in _RULES} if isinstance(each, dict) else True
            for name, each in parameters.items()
        },
    }
    try:
        problems = [*map(_describe, islice(Draft202012Validator(checked).iter_errors(given), _MOST_PROBLEMS))]
    except Exception as error:
        # Whatever a server describes or a model writes, the room goes on.
        raise ToolError("These arguments can't be checked. Go on without this tool.") from error
    if problems:
        raise ToolError(f"The arguments are wrong: {'; '.join(problems)}. Call it again with the right ones.")
    try:
        # What cannot be sent as it is cannot be shown as it is either.
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise ToolError("The arguments have half a character or an endless number. Write them again.") from error
    return given


def _nests(value: object, most: int) -> bool:
    """Return whether lists and objects in a value of JSON are nested deeper than `most`."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most < 0 or any(_nests(each, most - 1) for each in inner)


def _coerced(value: object, property_schema: object) -> object:
    """Convert a number or boolean that a small model wrote as text, or an integer written as 3.0; return other values
    unchanged.
    """
    kind = property_schema.get("type") if isinstance(property_schema, dict) else None
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    # A server may allow several types, as a list.
    if not isinstance(value, str) or kind not in ("integer", "number", "boolean"):
        return value
    text = value.strip().lower()
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, value)
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        return value


def schema_chars(schema: Mapping[str, object]) -> int:
    """Return how long a schema is as JSON; 0 if it cannot be written."""
    try:
        return len(json.dumps(schema))
    except (RecursionError, TypeError, ValueError):
        return 0


def schema_problem(schema: Mapping[str, object]) -> str | None:
    """Return why a schema can't be used, or None if it is a valid schema of an object."""
    try:
        if len(json.dumps(schema)) > MOST_SCHEMA_CHARS:
            return "it is too long"
        # Patterns are the server's to check, and need not be Python's.
        Draft202012Validator.check_schema(dict(schema), format_checker=jsonschema.FormatChecker(()))
    except RecursionError:
        return "it is nested too deeply"
    except jsonschema.SchemaError as error:
        return _describe(error)
    except Exception:  # noqa: BLE001 - whatever a server describes, the other tools go on
        return "it cannot be read"
    return None if schema.get("type", "object") == "object" else "it does not describe an object"


def with_items(schema: dict[str, object]) -> dict[str, object]:
    """Return a valid schema in which each list says of its items that they may be anything, if it says nothing: OpenAI
    refuses it otherwise. What looks like a schema in a default or a choice stays as it is.
    """
    kind = schema.get("type")
    if kind == "array" or (isinstance(kind, list) and "array" in kind):
        schema.setdefault("items", {})
    for each in DRAFT202012.subresources_of(schema):
        if isinstance(each, dict):
            with_items(each)
    return schema


def _describe(error: jsonschema.ValidationError | jsonschema.SchemaError) -> str:
    where = error.json_path.removeprefix("$").lstrip(".")
    return " ".join((f"{where}: " if where else "").split() + error.message.split())[:_PROBLEM_CHARS]
