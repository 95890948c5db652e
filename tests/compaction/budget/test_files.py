"""Which files, attachments and frames count as active."""

from __future__ import annotations

import pytest

from compaction.budget.files import FileReference, get_active_files, paths_read, should_preserve_file_content
from compaction.budget.messages import Message, MessageToolCall


def test_what_was_read_or_spoken_of_lately_is_active() -> None:
    """A file is active if it was read or mentioned recently. It has the step of its last mention, and a hash of the
    content when it was last read.
    """
    messages = [
        Message("assistant", "", tool_calls=(MessageToolCall("1", "read", '{"file": "a.txt"}'),), step=1),
        Message("tool", "alpha", tool_call_id="1", step=1),
        Message("assistant", "", tool_calls=(MessageToolCall("2", "read", '{"paths": ["b.txt", "c.txt"]}'),), step=2),
        Message("tool", "beta", tool_call_id="2", step=2),
        Message("user", "A frame of Bob's screen", path="frame-7", step=6),
        Message("user", "Tell me about c.txt again.", step=7),
    ]
    active = get_active_files(messages, 8)
    assert [(file.path, file.last_access_step) for file in active] == [("c.txt", 7), ("frame-7", 6)]
    assert {len(file.content_hash or "") for file in active} == {16}
    assert [file.path for file in get_active_files(messages, 6)] == ["a.txt", "b.txt", "c.txt", "frame-7"]
    assert get_active_files(messages, 40) == ()


def test_a_changed_file_has_another_hash() -> None:
    """A changed file has another hash, and the same content has the same hash."""
    hashes = [
        get_active_files([Message("tool", text, path="a", step=0)], 0)[0].content_hash for text in ("x", "y", "x")
    ]
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.mark.parametrize(
    "arguments", ["", "[1]", "{", '{"path": 7}', '{"query": "a.txt"}', '{"path": [null, ""]}', "[" * 5_000]
)
def test_whatever_a_model_writes_as_arguments(arguments: str) -> None:
    """Any arguments of a tool call are accepted; those without a path give no file."""
    messages = [
        Message("assistant", "", tool_calls=(MessageToolCall("1", "read", arguments),)),
        Message("tool", "alpha", tool_call_id="1"),
    ]
    assert paths_read(messages) == [frozenset(), frozenset()]
    assert get_active_files(messages, 0) == ()


@pytest.mark.parametrize(("step", "kept"), [(0, True), (5, True), (6, False)])
def test_five_steps_are_recent(step: int, kept: bool) -> None:
    """A file stays active for five steps after its last mention."""
    assert should_preserve_file_content(FileReference("a.txt", 0), step) is kept
