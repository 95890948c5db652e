"""Arguments against their schema: what is right passes, what is wrong is told so that it can be mended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.tools.memory import SEARCH_SCHEMA, TURNS_SCHEMA
from bot.brain.tools.schema import read_arguments, schema_problem
from bot.brain.tools.tool import ToolError


def test_what_is_right_passes() -> None:
    """Nothings are left out, and numbers and truths written as text are meant."""
    written = '{"query": "lantern", "limit": "5", "archived": "true", "speaker": null}'
    assert read_arguments(written, SEARCH_SCHEMA) == {"query": "lantern", "limit": 5, "archived": True}
    assert read_arguments("", {"type": "object"}) == {}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("{", "no JSON"),
        ("[1]", "no JSON object"),
        ("{}", "'query' is a required property"),
        ('{"query": 7}', "query: 7 is not of type 'string'"),
        ('{"query": "x", "limit": 99}', "limit: 99 is greater than the maximum of 20"),
        ('{"query": "x", "limit": "many"}', "limit: 'many' is not of type 'integer'"),
        ('{"query": "x", "rm": 1}', "Additional properties are not allowed"),
    ],
)
def test_what_is_wrong_is_told(written: str, told: str) -> None:
    """In a sentence for the model."""
    with pytest.raises(ToolError, match=told):
        read_arguments(written, SEARCH_SCHEMA)


def test_a_schema_fetches_nothing() -> None:
    """One that refers to an address is broken, not a reason to go there."""
    with pytest.raises(ToolError, match="own schema is broken"):
        read_arguments('{"a": 1}', {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}})


def test_schemas_are_looked_at() -> None:
    """Ours are right; others may not be."""
    assert schema_problem(SEARCH_SCHEMA) is None
    assert schema_problem(TURNS_SCHEMA) is None
    assert schema_problem({"type": "array"}) == "it is not of an object"
    assert "is not valid" in str(schema_problem({"type": "object", "properties": {"a": {"type": "thing"}}}))


@given(written=st.text(max_size=200) | st.recursive(st.integers(), st.lists).map(str))
def test_whatever_is_written_it_ends_in_an_object_or_a_sentence(written: str) -> None:
    """A model may write anything."""
    try:
        told = str(read_arguments(written, TURNS_SCHEMA)["from"])
    except ToolError as error:
        told = str(error)
    assert "\n" not in told
