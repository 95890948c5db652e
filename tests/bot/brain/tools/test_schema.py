"""Valid arguments pass; invalid ones are reported so that the model can correct them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.tools.memory import SEARCH_SCHEMA, TURNS_SCHEMA
from bot.brain.tools.schema import read_arguments, schema_problem
from bot.brain.tools.tool import ToolError


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


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{", "not JSON"),
        ("[" * 5_000, "not JSON"),
        ('{"query":' * 5_000, "not JSON"),
        ("[1]", "not a JSON object"),
        ("{}", "'query' is a required property"),
        ('{"query": null}', "query: None is not of type 'string'"),
        ('{"query": 7}', "query: 7 is not of type 'string'"),
        ('{"query": "x", "limit": 99}', "limit: 99 is greater than the maximum of 20"),
        ('{"query": "x", "limit": "many"}', "limit: 'many' is not of type 'integer'"),
        ('{"query": "x", "rm": 1}', "Additional properties are not allowed"),
    ],
)
def test_what_is_wrong_is_told(written: str, told: str) -> None:
    """Wrong arguments raise an error that tells the model what to correct."""
    with pytest.raises(ToolError, match=told):
        read_arguments(written, SEARCH_SCHEMA)


def test_a_schema_fetches_nothing() -> None:
    """A schema that refers to a URL is rejected, and the URL is not fetched."""
    with pytest.raises(ToolError, match="own schema is broken"):
        read_arguments('{"a": 1}', {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}})


def test_a_whole_number_may_be_written_with_a_point() -> None:
    """A whole number may be written as 2.0, which JSON schema counts as an integer."""
    given = read_arguments('{"from": 2.0, "to": "7"}', TURNS_SCHEMA)
    assert given == {"from": 2, "to": 7}
    assert all(isinstance(value, int) for value in given.values())


def test_nobody_elses_schema_keeps_the_bot_busy() -> None:
    """Slow patterns of a foreign schema are not evaluated, nor are items compared with each other, and references that
    double at every step are rejected. The tool's server checks the patterns itself.
    """
    slow = {"type": "string", "pattern": "^(a+)+$"}
    named = {"^(a+)+$": {"type": "string"}}
    closed = {"patternProperties": named, "additionalProperties": False}
    schema = {"properties": {"a": slow, "b": closed, "c": {"type": "array", "uniqueItems": True}}}
    endless = "a" * 64 + "!"
    arguments = {"a": endless, "b": {endless: 1}, "c": [1, 1]}
    assert read_arguments(json.dumps(arguments), schema) == arguments
    doubling: dict[str, object] = {f"d{step}": {"allOf": [{"$ref": f"#/$defs/d{step + 1}"}] * 2} for step in range(64)}
    with pytest.raises(ToolError, match="own schema is broken"):
        read_arguments('{"a": 1}', {"$defs": doubling | {"d64": {}}, "properties": {"a": {"$ref": "#/$defs/d0"}}})


@pytest.mark.parametrize("rule", [{"allOf": [{"type": "integer"}] * 900}, {"enum": [*range(2_000, 4_000)]}])
def test_many_rules_for_many_items_are_given_up(rule: dict[str, object]) -> None:
    """A foreign schema that has thousands of rules for each item of a list would take minutes. A long list by itself
    does not.
    """
    given = {"a": [*range(2_000)]}
    with pytest.raises(ToolError, match="own schema is broken"):
        read_arguments(
            json.dumps(given), {"properties": {"a": {"type": "array", "contains": rule, "minContains": 2_000}}}
        )
    plain = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 3_000}
    assert read_arguments(json.dumps(given), {"properties": {"a": plain}}) == given


@pytest.mark.parametrize(
    "version", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
def test_a_part_that_names_its_version_has_the_same_limits(version: str) -> None:
    """Its patterns are not evaluated either, and its rules are counted. A parameter may have that name."""
    pattern = {"$schema": version, "pattern": "^(a+)+$"}
    named: dict[str, object] = {"properties": {"a": pattern, "$schema": pattern}, "additionalProperties": False}
    given = {"a": "aab", "$schema": "aab"}
    assert read_arguments(json.dumps(given), named) == given
    many = {"$schema": version, "allOf": [{"type": "integer"}] * 900}
    with pytest.raises(ToolError, match="own schema is broken"):
        read_arguments(json.dumps({"a": [*range(50)]}), {"$schema": version, "properties": {"a": {"items": many}}})
    assert read_arguments("{}", {"$schema": version, "type": "object"}) == {}


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
