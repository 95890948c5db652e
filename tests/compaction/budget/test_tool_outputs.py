"""Outputs of tools are first whole, then cut to their beginning and end, then replaced by a placeholder. Outputs of
active files stay.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.budget.tool_outputs import (
    FileReference,
    KeyInfo,
    ToolOutputOptions,
    create_truncated_placeholder,
    extract_key_info,
    get_active_files,
    paths_read,
    should_preserve_file_content,
    should_truncate_tool_result,
    summarize_tool_output,
    truncate_old_tool_outputs,
)
from compaction.payload import PartKind, PayloadPart, make_part
from compaction.tokens import estimate_text_tokens
from tests.compaction.budget.talk import LISTING, answers, read, said, use


def search(content: str, *, call_id: str = "s") -> list[PayloadPart]:
    """Return the messages of a search, which reads no file."""
    return use("memory_search", '{"query": "doors"}', content, call_id=call_id)


def output(content: str, name: str | None = None) -> PayloadPart:
    return make_part("tool", PartKind.TOOL, content, name=name)


def outputs(messages: list[PayloadPart]) -> list[str]:
    """Return the contents of the messages of tools."""
    return [each.content for each in messages if each.role == "tool"]


@pytest.mark.covers("5.1")
def test_an_old_one_becomes_a_placeholder() -> None:
    """An old output becomes a placeholder with the name of the tool, the size and the key facts. Calls and other
    messages stay as they were.
    """
    messages = [said("Look."), *search(LISTING), *answers(1)]
    aged = truncate_old_tool_outputs(messages, 2 + 5)
    assert [aged[0], aged[1], aged[3]] == [messages[0], messages[1], messages[3]]
    (placeholder,) = outputs(aged)
    assert placeholder.startswith(
        f"[Output of memory_search, {estimate_text_tokens(LISTING)} tokens, left out because it"
    )
    assert "src/app/module_0.py" in placeholder
    assert "40 lines" in placeholder
    assert aged[2].tool_call_id == "s"
    assert truncate_old_tool_outputs(aged, 50) == aged


@pytest.mark.covers("5.1")
def test_a_large_one_keeps_head_and_tail() -> None:
    """A large output keeps its beginning and its end, which show what it is and how it went."""
    text = "HEAD " + LISTING * 20 + " TAIL"
    (short,) = outputs(truncate_old_tool_outputs(search(text)))
    assert short.startswith("HEAD src/app")
    assert short.endswith(" TAIL")
    assert "characters left out …]" in short
    assert 0.8 * 2_000 < estimate_text_tokens(short) <= 2_000


@pytest.mark.covers("5.3")
def test_the_content_of_an_active_file_stays() -> None:
    """An old output stays if its file is active because the file was mentioned lately, by its path or by its name."""
    old = [*read("notes/plan.md", LISTING), *answers(7)]
    for words in ("What does notes/plan.md say?", "And plan.md?"):
        messages = [*old, said(words)]
        assert outputs(truncate_old_tool_outputs(messages)) == [LISTING]
        assert outputs(truncate_old_tool_outputs(messages, 30))[0].startswith("[Output of read_file")
    unspoken = [*old, said("Anything else?")]
    assert outputs(truncate_old_tool_outputs(unspoken))[0].startswith("[Output of read_file")
    never = ToolOutputOptions(preserve_recent_files=False)
    spoken = [*old, said("And plan.md?")]
    assert outputs(truncate_old_tool_outputs(spoken, None, never))[0].startswith("[Output of read_file")


def test_only_the_newest_content_of_an_active_file_stays() -> None:
    """Older contents of an active file age like any other output."""
    messages = [*read("plan.md", LISTING), *answers(6), *read("plan.md", LISTING + " now", call_id="again")]
    old, new = outputs(truncate_old_tool_outputs(messages))
    assert old.startswith("[Output of read_file")
    assert new == LISTING + " now"


@pytest.mark.parametrize(
    ("message", "age", "old"),
    [
        (output(LISTING), 5, False),
        (output(LISTING), 6, True),
        (said(LISTING), 60, False),
        (create_truncated_placeholder(output(LISTING)), 60, False),
    ],
)
def test_what_is_old(message: PayloadPart, age: int, old: bool) -> None:
    """Only outputs of tools become old, and a placeholder is not replaced again."""
    assert should_truncate_tool_result(message, age) is old


@pytest.mark.covers("5.4")
def test_key_facts() -> None:
    """The key facts of an output are its paths, its error lines and its outcome."""
    failed = "reading data/in.json\nTraceback (most recent call last):\n  ValueError: bad  value\nfailed after 3 s"
    assert extract_key_info(failed, "run") == KeyInfo(
        tool="run",
        outcome="failure",
        paths=("data/in.json",),
        errors=("Traceback (most recent call last):", "failed after 3 s"),
        lines=4,
    )
    assert extract_key_info("12 passed, 0 failed\nwritten to out/report.html", "test").outcome == "success"
    assert extract_key_info("No errors.", "lint").outcome == "success"
    assert extract_key_info("C:\\games\\save.dat", "ls").paths == ("C:\\games\\save.dat",)
    assert extract_key_info("a map of Tokyo", "look").outcome == "unknown"
    assert summarize_tool_output(output(failed, "run")) == (
        "Outcome: failure; 4 lines. Paths: data/in.json. Errors: Traceback (most recent call last):; failed after 3 s."
    )


@settings(deadline=None)
@given(
    texts=st.lists(st.text(max_size=400).map(lambda text: text * 20), max_size=6),
    now=st.integers(0, 20),
    age=st.integers(0, 8),
    tokens=st.integers(60, 500),
)
def test_any_output_keeps_its_bounds(texts: list[str], now: int, age: int, tokens: int) -> None:
    """For any outputs, none exceeds its limit, the number of messages stays the same, and a second pass changes
    nothing.
    """
    options = ToolOutputOptions(max_tool_output_age=age, max_tool_output_tokens=tokens)
    messages = [each for step, text in enumerate(texts) for each in search(text, call_id=str(step))]
    aged = truncate_old_tool_outputs(messages, now, options)
    assert len(aged) == len(messages)
    assert [each.role for each in aged] == [each.role for each in messages]
    assert all(estimate_text_tokens(each) <= max(tokens, 400) for each in outputs(aged))
    assert truncate_old_tool_outputs(aged, now, options) == aged


def test_what_was_read_or_spoken_of_lately_is_active() -> None:
    """A file is active if it was read or mentioned recently. It has the step of its last mention, and a hash of the
    content when it was last read.
    """
    messages = [
        *read("a.txt", "alpha"),
        *use("look", '{"paths": ["b.txt", "frame-7"]}', "beta", call_id="2"),
        *answers(4),
        said("Tell me about b.txt again."),
    ]
    active = get_active_files(messages, 7)
    assert [(file.path, file.last_access_step) for file in active] == [("b.txt", 6), ("frame-7", 2)]
    assert {len(file.content_hash or "") for file in active} == {16}
    assert [file.path for file in get_active_files(messages, 6)] == ["a.txt", "b.txt", "frame-7"]
    assert get_active_files(messages, 40) == ()


@pytest.mark.covers("5.3")
@pytest.mark.parametrize(
    ("output", "paths"),
    [
        ('<data from="read_attachment">\nFile: plan.md\nplan.md (2 KB)\n\nWe leave at nine.\n</data>', {"plan.md"}),
        ("File: plan.md\nWe leave at nine.", {"plan.md"}),
        ("File: ", set()),
        # What the file itself says names nothing.
        ("We leave at nine.\n\nFile: other.md\n", set()),
    ],
)
def test_an_output_may_name_its_file(output: str, paths: set[str]) -> None:
    """A tool without an argument, which has read what it found, says in its first line what that was."""
    messages = use("read_attachment", "{}", output, call_id="1")
    assert paths_read(messages) == [frozenset(), paths]


@pytest.mark.parametrize(
    "arguments", ["", "[1]", "{", '{"path": 7}', '{"query": "a.txt"}', '{"path": [null, ""]}', "[" * 5_000]
)
def test_whatever_a_model_writes_as_arguments(arguments: str) -> None:
    """Any arguments of a tool call are accepted; those without a path give no file."""
    messages = use("read", arguments, "alpha", call_id="1")
    assert paths_read(messages) == [frozenset(), frozenset()]
    assert get_active_files(messages, 0) == ()


@pytest.mark.parametrize(("step", "kept"), [(0, True), (5, True), (6, False)])
def test_five_steps_are_recent(step: int, kept: bool) -> None:
    """A file stays active for five steps after its last mention."""
    assert should_preserve_file_content(FileReference("a.txt", 0), step) is kept
