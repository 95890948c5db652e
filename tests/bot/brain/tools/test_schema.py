"""Valid arguments pass; invalid ones are reported so that the model can correct them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.tools.memory import SEARCH_SCHEMA, TURNS_SCHEMA
from bot.brain.tools.tool import ToolError, read_arguments, schema_problem


def test_what_is_right_passes() -> None:
    """Null values are dropped; numbers and booleans written as text are converted."""
    written = '{"query": "lantern", "limit": "5", "archived": "true", "speaker": null}'
    assert read_arguments(written, SEARCH_SCHEMA) == {"query": "lantern", "limit": 5, "archived": True}
    assert read_arguments("", {"type": "object"}) == {}


def test_null_is_given_where_something_must_be() -> None:
    """MCP servers in Python describe `until: str | None` so, and refuse a call without it."""
    schema = {
        "type": "object",
        "properties": {"until": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "limit": {"type": "integer"}},
        "required": ["until"],
    }
    assert read_arguments('{"until": null, "limit": null}', schema) == {"until": None}


def test_a_parameter_may_have_several_types() -> None:
    """MCP servers in JavaScript describe what may be null so."""
    schema = {"type": "object", "properties": {"query": {"type": ["string", "null"]}}}
    assert read_arguments('{"query": "7"}', schema) == {"query": "7"}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{", "not JSON"),
        ("[" * 5_000, "not JSON"),
        ('{"query":' * 5_000, "not JSON"),
        ("[1]", "not a JSON object"),
        ("{}", "required"),
        ('{"query": null}', "query: None"),
        ('{"query": 7}', "query: 7"),
        ('{"query": "x", "limit": 99}', "limit: 99.*20"),
        ('{"query": "x", "limit": "many"}', "limit: 'many'"),
        ('{"query": "x", "rm": 1}', "Additional"),
    ],
)
def test_what_is_wrong_is_told(written: str, told: str) -> None:
    """Wrong arguments raise an error that tells the model what to correct."""
    with pytest.raises(ToolError, match=told):
        read_arguments(written, SEARCH_SCHEMA)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    """A whole number may be written as 2.0, which JSON schema counts as an integer."""
    given = read_arguments('{"from": 2.0, "to": "7"}', TURNS_SCHEMA)
    assert given == {"from": 2, "to": 7}
    assert all(isinstance(value, int) for value in given.values())


_DOUBLING = {f"d{step}": {"allOf": [{"$ref": f"#/$defs/d{step + 1}"}] * 2} for step in range(64)} | {"d64": {}}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False},
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"$defs": _DOUBLING, "properties": {"a": {"$ref": "#/$defs/d0"}}},
        {"properties": {"a": {"contains": {"allOf": [{"type": "integer"}] * 900}, "uniqueItems": True}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"pattern": "^(a+)+$"}}},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}}},
        {"properties": {"a": True}, "required": "a"},
    ],
)
@pytest.mark.parametrize("value", ["a" * 64 + "!", "a" * 5_000])
def test_nobody_elses_schema_keeps_the_bot_busy(schema: dict[str, object], value: str) -> None:
    """Of a foreign schema only the plain rules of each argument are checked: its patterns may never end, its references
    may double at every step or lead elsewhere. The tool's server checks them itself.
    """
    assert read_arguments(json.dumps({"a": value}), schema) == {"a": value}


def test_schemas_are_looked_at() -> None:
    """The bot's own schemas are valid, and problems of a foreign schema are found."""
    assert schema_problem(SEARCH_SCHEMA) is None
    assert schema_problem(TURNS_SCHEMA) is None
    assert schema_problem({"type": "array"}) == "it does not describe an object"
    assert "is not valid" in str(schema_problem({"type": "object", "properties": {"a": {"type": "thing"}}}))
    for pattern in ("a{4294967296}", r"^\p{L}+$", r"(?<year>\d+)"):
        # JavaScript's, which the server checks. The first is more than Python takes.
        assert schema_problem({"type": "object", "properties": {"a": {"pattern": pattern}}}) is None
    deep: dict[str, object] = {"type": "object"}
    for _ in range(150):
        deep = {"type": "object", "properties": {"a": deep}}
    assert schema_problem(deep) == "it is nested too deeply"
    assert schema_problem({"type": "object", "description": "x" * 50_000}) == "it is too long"


@given(written=st.text(max_size=200) | st.recursive(st.integers(), st.lists).map(str))
def test_whatever_is_written_it_ends_in_an_object_or_a_sentence(written: str) -> None:
    """Any text of a model leads to an object or to a one-line error."""
    try:
        told = str(read_arguments(written, TURNS_SCHEMA)["from"])
    except ToolError as error:
        told = str(error)
    assert "\n" not in told


@pytest.mark.parametrize(
    "written", ['{"n": NaN}', '{"n": -Infinity}', '{"n": 1e999}', '{"n": "nan"}', '{"t": "\\ud83d"}']
)
def test_what_cannot_be_sent_as_it_is_written_is_refused(written: str) -> None:
    """A server would get something else than the card with the call shows."""
    schema = {"type": "object", "properties": {"n": {"type": "number"}, "t": {"type": "string"}}}
    with pytest.raises(ToolError, match="half a character"):
        read_arguments(written, schema)
