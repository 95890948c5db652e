"""Arguments as a model writes them, checked against a tool's JSON schema. The one home of the `jsonschema` library."""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import jsonschema
from jsonschema import Draft202012Validator
from referencing import Registry

from bot.brain.tools.tool import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A schema knows nothing but itself: one that refers to an address would otherwise make us fetch it.
_NOTHING_ELSE: Registry[Any] = Registry()
_MOST_TOLD = 3
_TOLD_CHARS = 200
# Some 6,000 tokens, which every prompt would pay for.
MOST_SCHEMA_CHARS = 20_000
# References followed in one check: a large schema takes dozens, one that doubles at every step takes for ever.
_MOST_REFERENCES = 2_000
_references_left: ContextVar[int] = ContextVar("references_left")


def _followed(name: str) -> Any:
    """Return the check of references by that keyword, of which there are only so many."""
    follow = Draft202012Validator.VALIDATORS[name]

    def check(validator: Any, reference: Any, instance: Any, schema: Any) -> Iterator[Any]:
        left = _references_left.get() - 1
        _references_left.set(left)
        if left < 0:
            raise RecursionError("The schema's references lead on and on.")
        yield from follow(validator, reference, instance, schema) or ()

    return check


def _additional(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if "patternProperties" not in schema:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, instance, schema) or ()


# A schema may be somebody else's: its patterns are not tried, for one of them can take for ever and would hold up every
# room; who wrote the schema checks them too.
_CHECKS = {
    **dict.fromkeys(("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems"), lambda *_: iter(())),
    "additionalProperties": _additional,
    "$ref": _followed("$ref"),
    "$dynamicRef": _followed("$dynamicRef"),
}
_Validator: Any = jsonschema.validators.extend(Draft202012Validator, _CHECKS)  # type: ignore[no-untyped-call]


def read_arguments(written: str, schema: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that a model wrote as JSON. Raises `ToolError` with what is wrong, for the model to mend."""
    try:
        arguments = json.loads(written or "{}")
    except ValueError as error:
        raise ToolError("The arguments are no JSON. Write one JSON object.") from error
    if not isinstance(arguments, dict):
        raise ToolError("The arguments are no JSON object. Write one, with the parameters as keys.")
    # Small models write every optional parameter down, as nothing.
    properties = schema.get("properties")
    types = properties if isinstance(properties, dict) else {}
    given = {name: _meant(value, types.get(name)) for name, value in arguments.items() if value is not None}
    validator = _Validator(dict(schema), registry=_NOTHING_ELSE)
    _references_left.set(_MOST_REFERENCES)
    try:
        problems = [_told(error) for error, _ in zip(validator.iter_errors(given), range(_MOST_TOLD), strict=False)]
    except Exception as error:
        # A schema of somebody else's that leads nowhere.
        raise ToolError("This tool's own schema is broken. Go on without it.") from error
    if problems:
        raise ToolError(f"The arguments are wrong: {'; '.join(problems)}. Call it again with the right ones.")
    return given


def _meant(value: object, wanted: object) -> object:
    """Return what a small model meant that wrote a number or a truth as text, or a whole number with a point;
    everything else as it is."""
    kind = wanted.get("type") if isinstance(wanted, dict) else None
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


def schema_problem(schema: Mapping[str, object]) -> str | None:
    """Return what is wrong with a schema; None if it is one of an object's."""
    try:
        if len(json.dumps(schema)) > MOST_SCHEMA_CHARS:
            return "it is too long"
        Draft202012Validator.check_schema(dict(schema))
    except RecursionError:
        return "it is too deep to be read"
    except jsonschema.SchemaError as error:
        return _told(error)
    return None if schema.get("type", "object") == "object" else "it is not of an object"


def _told(error: jsonschema.ValidationError | jsonschema.SchemaError) -> str:
    where = error.json_path.removeprefix("$").lstrip(".")
    return " ".join((f"{where}: " if where else "").split() + error.message.split())[:_TOLD_CHARS]
