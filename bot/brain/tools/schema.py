"""Parses the arguments that a model writes and checks them against a tool's JSON schema. No other module uses
`jsonschema`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
from jsonschema import Draft202012Validator
from referencing.jsonschema import DRAFT202012

from bot.brain.tools.tool import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def read_arguments(written: str, schema: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that a model wrote as JSON. Raises `ToolError` with what to correct, for the model."""
    try:
        arguments = json.loads(written or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError("The arguments are not JSON. Write one JSON object.") from error
    if not isinstance(arguments, dict):
        raise ToolError("The arguments are not a JSON object. Write one, with the parameters as keys.")
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
    errors = Draft202012Validator(checked).iter_errors(given)
    if problems := [_describe(error) for error, _ in zip(errors, range(_MOST_PROBLEMS), strict=False)]:
        raise ToolError(f"The arguments are wrong: {'; '.join(problems)}. Call it again with the right ones.")
    return given


def _coerced(value: object, property_schema: object) -> object:
    """Convert a number or boolean that a small model wrote as text, or an integer written as 3.0; return other values
    unchanged.
    """
    kind = property_schema.get("type") if isinstance(property_schema, dict) else None
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str) or kind not in {"integer", "number", "boolean"}:
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
