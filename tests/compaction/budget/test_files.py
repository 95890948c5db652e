"""Which files, attachments and frames count as active."""

from __future__ import annotations

import pytest

from compaction.budget.files import FileReference, get_active_files, paths_read, should_preserve_file_content
from tests.compaction.budget.talk import answers, read, said, use


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


def test_a_changed_file_has_another_hash() -> None:
    """The hash is that of the content."""
    hashes = [get_active_files(read("a", text), 0)[0].content_hash for text in ("x", "y", "x")]
    assert hashes[0] == hashes[2] != hashes[1]


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
