"""The scripted model answers the latest question and quotes tool results."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rehearsal.runner.scripted_answers import ScriptedModel
from rehearsal.script.server_specs import ModelSpec
from rehearsal.servers.chat import ChatCall, ScriptedToolCall, ToolCallAnswer

SPEC = ModelSpec.model_validate(
    {
        "answers": [
            {
                "asked": ["lantern", "colour"],
                "say": "{found}.",
                "tool": "memory_search",
                "arguments": {"query": "lantern"},
            },
            {"asked": ["lantern"], "say": "By the door."},
        ],
        "otherwise": "SKIP",
    }
)
TOLD = "(turn 3)\n[21:04] Ada: the lantern is red.\n\n(turn 9)\n[21:09] Ben: no, blue"


def call(*messages: dict[str, Any]) -> ChatCall:
    """Return a streamed request with these messages."""
    return ChatCall(messages, stream=True, body={})


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("[21:10] Ada: Where is the Lantern?", "By the door."),
        ("Which colour had the lantern?", "nothing."),
        ("What of the lanterns?", "SKIP"),
    ],
)
def test_the_first_answer_with_all_its_words_counts(asked: str, answered: str) -> None:
    """The first answer whose words are all in the question is given. Words must match whole, in any case."""
    messages = ({"role": "user", "content": "the lantern"}, {"role": "user", "content": asked})
    assert ScriptedModel(SPEC).answer(call(*messages)) == answered


def test_an_answer_may_need_what_the_model_was_told() -> None:
    """`knew` matches anywhere in the request, for example in a note or a summary. An answer needs `asked` or `knew`."""
    spec = ModelSpec.model_validate({"answers": [{"knew": ["danger"], "say": "Careful!"}], "otherwise": "SKIP"})
    asked = {"role": "user", "content": "[21:10] Ada joined the channel."}
    note = {"role": "system", "content": "On Ada's screen: new text: “DANGER”"}
    assert ScriptedModel(spec).answer(call(asked)) == "SKIP"
    assert ScriptedModel(spec).answer(call(note, asked)) == "Careful!"
    with pytest.raises(ValidationError, match="`asked` or `knew`"):
        ModelSpec.model_validate({"answers": [{"say": "Careful!"}]})


def test_what_a_tool_told_is_said() -> None:
    """`{found}` becomes the turn of the tool result with the most words of the query, without time and speaker."""
    messages = ({"role": "user", "content": "Which colour had the lantern?"}, {"role": "tool", "content": TOLD})
    assert ScriptedModel(SPEC).answer(call(*messages)) == "the lantern is red."
    other = SPEC.answers[0].model_copy(update={"arguments": {"query": "blue"}})
    asks_otherwise = SPEC.model_copy(update={"answers": (other,)})
    assert ScriptedModel(asks_otherwise).answer(call(*messages)) == "no, blue."


def test_a_tool_is_called_first_where_it_is_offered() -> None:
    """An offered tool is called once before the answer. If no tool may be called, the model answers without it."""
    messages = ({"role": "user", "content": "Which colour had the lantern?"},)
    offered = {"tools": [{"function": {"name": "memory_search"}}]}
    assert ScriptedModel(SPEC).answer(ChatCall(messages, True, offered)) == ToolCallAnswer(
        (ScriptedToolCall("memory_search", {"query": "lantern"}),)
    )
    after = (*messages, {"role": "tool", "content": TOLD})
    assert ScriptedModel(SPEC).answer(ChatCall(after, True, offered)) == "the lantern is red."
    assert ScriptedModel(SPEC).answer(ChatCall(messages, True, offered | {"tool_choice": "none"})) == "nothing."
