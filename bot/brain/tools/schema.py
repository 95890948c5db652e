"""Parses the arguments that a model writes and checks them against a tool's JSON schema. No other module uses
`jsonschema`.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import jsonschema
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from bot.brain.tools.tool import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Without a registry, a schema that refers to a URL would make the library fetch it.
_EMPTY_REGISTRY: Registry[Any] = Registry()
_MOST_PROBLEMS = 3
_PROBLEM_CHARS = 200
# About 6,000 tokens, which each prompt would pay for.
MOST_SCHEMA_CHARS = 20_000
# Steps of one check: one for each keyword of the schema that is applied to a part of the arguments, and one for each
# entry of either. A large call takes hundreds. A malicious schema that doubles at every reference never ends, and one
# that repeats thousands of rules for each item of a list takes minutes, in which nobody is heard.
_MOST_STEPS = 20_000
_steps_left: ContextVar[int] = ContextVar("steps_left")


def _limited(check: Any) -> Any:
    """Return the check of a keyword, with a limit on the steps."""

    def limited(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        left = _steps_left.get() - 1 - _entries(value) - _entries(instance)
        _steps_left.set(left)
        if left < 0:
            raise RecursionError("The schema takes too many steps.")
        yield from check(validator, value, instance, schema) or ()

    return limited


def _entries(value: object) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


def _additional(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if "patternProperties" not in schema:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, instance, schema) or ()


# Schemas come from MCP servers too. Their patterns are not evaluated: a malicious one could block the event loop for
# ever, and so could the comparison of each item with each other. The server checks them itself.
_NOT_CHECKED = ("pattern", "patternProperties", "uniqueItems", "unevaluatedProperties", "unevaluatedItems")
_CHECKS = {
    **Draft202012Validator.VALIDATORS,
    **dict.fromkeys(_NOT_CHECKED, lambda *_: ()),
    "additionalProperties": _additional,
}
_Validator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {keyword: _limited(check) for keyword, check in _CHECKS.items()}
)


def read_arguments(written: str, schema: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that a model wrote as JSON. Raises `ToolError` with what to correct, for the model."""
    try:
        arguments = json.loads(written or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError("The arguments are not JSON. Write one JSON object.") from error
    if not isinstance(arguments, dict):
        raise ToolError("The arguments are not a JSON object. Write one, with the parameters as keys.")
    properties, required = schema.get("properties"), schema.get("required")
    types = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else ()
    # Small models write null for each optional parameter.
    given = {
        name: _coerced(value, types.get(name))
        for name, value in arguments.items()
        if value is not None or name in needed
    }
    _steps_left.set(_MOST_STEPS)
    try:
        validator = _Validator(_without_versions(dict(schema)), registry=_EMPTY_REGISTRY)
        problems = [
            _describe(error) for error, _ in zip(validator.iter_errors(given), range(_MOST_PROBLEMS), strict=False)
        ]
    except Exception as error:
        # A broken reference or too many steps, in the schema of an MCP server.
        raise ToolError("This tool's own schema is broken. Go on without it.") from error
    if problems:
        raise ToolError(f"The arguments are wrong: {'; '.join(problems)}. Call it again with the right ones.")
    return given


def _without_versions(value: Any) -> Any:
    """Return a schema, or a part of one, that names no version of JSON Schema: the library would check a part that does
    with its own checks, which have no limits, instead of ours.
    """
    if isinstance(value, dict):
        # What is no text is a parameter of that name.
        return {
            name: _without_versions(each)
            for name, each in value.items()
            if name != "$schema" or not isinstance(each, str)
        }
    return [_without_versions(each) for each in value] if isinstance(value, list) else value


def _coerced(value: object, property_schema: object) -> object:
    """Convert a number or boolean that a small model wrote as text, or an integer written as 3.0; return other values
    unchanged.
    """
    kind = property_schema.get("type") if isinstance(property_schema, dict) else None
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    try:
        match kind:
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "boolean":
                return {"true": True, "false": False}.get(text, value)
            case _:
                return value
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
