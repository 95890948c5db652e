"""Every complete line of a log is read once and in order, whatever happens to its files meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.logs.log_file import drop_lines_before, forget_in_logs
from bot.logs.reader import MAX_LINE_BYTES, LogReader, rotated_files


def rotate(path: Path, *, keep: int = 5) -> None:
    """Rotate the files, as the bot's log does when a file is full."""
    for number in range(keep, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        newer = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        if newer.exists():
            newer.rename(older)


def add(path: Path, text: str) -> None:
    """Write to the end of the log, as the bot does."""
    with path.open("a") as file:
        file.write(text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log that does not exist yet."""
    return tmp_path / "roomtone.jsonl"


def test_rotated_files_come_oldest_first(path: Path) -> None:
    """Rotated files are sorted by number, and files of other names are ignored."""
    for name in ("roomtone.jsonl.1", "roomtone.jsonl.10", "roomtone.jsonl.2", "roomtone.jsonl.gz", "other.jsonl.3"):
        (path.parent / name).touch()
    assert [each.name for each in rotated_files(path)] == ["roomtone.jsonl.10", "roomtone.jsonl.2", "roomtone.jsonl.1"]
    assert rotated_files(path.parent / "absent" / "log") == []


def test_all_files_are_read_in_order(path: Path) -> None:
    """The oldest rotated file is read first and the current one last. A line without a final newline is read too."""
    add(path, "1\n2\n")
    rotate(path)
    add(path, "3\n4")
    rotate(path)
    add(path, "5\n6")
    with LogReader(path) as lines:
        assert list(lines.read()) == [b"1", b"2", b"3", b"4", b"5"]
        assert list(lines.rest()) == [b"6"]
        assert list(lines.rest()) == []


def test_a_log_deleted_moved_or_cut_back_goes_on(path: Path) -> None:
    """After the log is deleted, moved or emptied, the new file is read from its beginning, and rotated files are not
    read twice.
    """
    add(path, "1\n")
    rotate(path)
    add(path, "2\n")
    with LogReader(path) as lines:
        assert list(lines.read()) == [b"1", b"2"]
        path.unlink()
        assert list(lines.read()) == []
        add(path, "3\n")
        assert list(lines.read()) == [b"3"]
        path.rename(path.parent / "elsewhere")
        add(path, "4, long enough to tell\n")
        assert list(lines.read()) == [b"4, long enough to tell"]
        path.write_text("")
        add(path, "5\n")
        assert list(lines.read()) == [b"5"]


def line(second: int, event: str, **fields: str) -> str:
    """Return a line of the log, `second` seconds after the beginning of 1970."""
    return json.dumps({"timestamp": f"1970-01-01T00:00:{second:02}.000000Z", "event": event} | fields) + "\n"


@pytest.mark.parametrize("clock_of_the_last", [9, 4], ids=["clock goes on", "clock was set back"])
def test_lines_that_are_left_are_not_read_again(path: Path, clock_of_the_last: int) -> None:
    """Retention and /forget-me write the log anew. Who follows it gets what is added, and nothing for a second time."""
    old, kept, last = line(3, "old"), line(8, "said", by="4711"), line(clock_of_the_last, "last")
    add(path, old + kept + last)
    with LogReader(path) as lines:
        assert len(list(lines.read())) == 3
        assert drop_lines_before(path.parent, 5.0) == 1
        assert list(lines.read()) == []
        add(path, line(10, "new"))
        assert list(lines.read()) == [line(10, "new").encode().rstrip()]
        assert forget_in_logs(path.parent, "4711") == 1
        add(path, line(11, "newer"))
        assert list(lines.read()) == [line(11, "newer").encode().rstrip()]


def test_a_log_of_which_nothing_is_left_goes_on(path: Path) -> None:
    """If all that was read is removed, what comes after it is read."""
    add(path, line(3, "old"))
    with LogReader(path) as lines:
        assert len(list(lines.read())) == 1
        assert drop_lines_before(path.parent, 5.0) == 1
        add(path, line(7, "new"))
        assert list(lines.read()) == [line(7, "new").encode().rstrip()]


def test_a_line_without_end_is_dropped(path: Path) -> None:
    """A line longer than any event is dropped without filling the memory, and the lines after it are read."""
    add(path, "1\n" + "x" * (2 * MAX_LINE_BYTES) + "\n2\n")
    with LogReader(path) as lines:
        assert list(lines.read()) == [b"1", b"2"]
    add(path, "y" * (2 * MAX_LINE_BYTES))
    with LogReader(path) as lines:
        assert list(lines.read()) == [b"1", b"2"]
        assert list(lines.rest()) == []


@given(
    steps=st.lists(
        st.one_of(st.text("ab\n", max_size=6), st.sampled_from(["ROTATE", "READ"])),
        max_size=40,
    )
)
def test_any_schedule_gives_every_line_once(steps: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """For any order of writes, rotations and reads, the result is the lines of all files in order."""
    path = tmp_path_factory.mktemp("log") / "roomtone.jsonl"
    path.touch()
    written, got = [""], []
    with LogReader(path) as lines:
        got += list(lines.read())
        for step in steps:
            match step:
                case "ROTATE":
                    rotate(path, keep=100)
                    path.touch()
                    written.append("")
                case "READ":
                    got += list(lines.read())
                case text:
                    add(path, text)
                    written[-1] += text
        got += [*lines.read(), *lines.rest()]
    assert got == [line.encode() for file in written for line in file.split("\n") if line]
