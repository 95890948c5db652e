"""A process reads its own log for a tail elsewhere: the lines that it wants, without what people said."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from bot.remote.gateway_side.reported_log import event_in
from bot.shared_log.messages import LogRequest
from bot.shared_log.requested_lines import RequestedLines

if TYPE_CHECKING:
    from pathlib import Path

TAIL = "a" * 32


def write(path: Path, *events: dict[str, Any]) -> None:
    """Append events to a log."""
    with path.open("a") as file:
        file.writelines(
            json.dumps({"timestamp": "2026-11-20T04:11:05Z", "level": "info", **each}) + "\n" for each in events
        )


def lines_of(path: Path, request: LogRequest, **more: Any) -> RequestedLines:
    """Return what reads a log for a request."""
    return RequestedLines(path, request, **{"after": None, "speech": False, "pause": lambda _: False, **more})


def names(lines: list[str]) -> list[str]:
    """Return the names of the events in lines."""
    return [json.loads(line)["event"] for line in lines]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with some events."""
    path = tmp_path / "roomtone.jsonl"
    write(path, *({"event": f"event_{number}", "session_id": f"s{number % 2}"} for number in range(6)))
    return path


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        (LogRequest(TAIL, "m", 0.0), [0, 1, 2, 3, 4, 5]),
        (LogRequest(TAIL, "m", 0.0, last=2), [4, 5]),
        (LogRequest(TAIL, "m", 0.0, session="s1"), [1, 3, 5]),
        (LogRequest(TAIL, "m", 0.0, session="s1", last=1), [5]),
        (LogRequest(TAIL, "m", 0.0, patterns=("event_2", "*_3")), [2, 3]),
    ],
)
def test_the_wanted_lines_are_told(path: Path, request_: LogRequest, wanted: list[int]) -> None:
    """By session, names and number, and afterwards what is added."""
    lines = lines_of(path, request_)
    assert names(lines.existing()) == [f"event_{number}" for number in wanted]
    assert not lines.older
    write(path, {"event": "event_3", "session_id": "s1"}, {"event": "other"})
    assert "event_3" in names(lines.new())
    assert lines.new() == []
    lines.close()


def test_what_is_left_out_is_known(path: Path) -> None:
    """A log that is larger than what is read has older lines, and the first line that is read is whole."""
    lines = lines_of(path, LogRequest(TAIL, "m", 0.0), most_bytes=path.stat().st_size // 2)
    assert names(lines.existing()) == ["event_3", "event_4", "event_5"]
    assert lines.older
    lines.close()


def test_it_goes_on_after_a_time(path: Path) -> None:
    """A process that comes back tells only what is newer."""
    write(path, {"event": "later", "timestamp": "2026-11-20T04:11:05.5Z"})
    lines = lines_of(path, LogRequest(TAIL, "m", 0.0), after=datetime.fromisoformat("2026-11-20T04:11:05Z"))
    assert names(lines.existing()) == ["later"]
    lines.close()


def test_all_that_came_since_a_time_is_told_however_few_were_asked_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tail wanted the last one at its beginning. What is left out then is known."""
    monkeypatch.setattr("bot.shared_log.requested_lines.MOST_LINES", 3)
    for count, wanted, older in ((3, [0, 1, 2], False), (4, [1, 2, 3], True)):
        write(
            path,
            *({"event": f"later_{count}_{each}", "timestamp": f"2026-11-2{count}T00:00:00Z"} for each in range(count)),
        )
        lines = lines_of(
            path, LogRequest(TAIL, "m", 0.0, last=1), after=datetime.fromisoformat(f"2026-11-2{count - 1}T12:00:00Z")
        )
        assert names(lines.existing()) == [f"later_{count}_{each}" for each in wanted]
        assert lines.older is older
        lines.close()


@pytest.mark.parametrize(("read", "older"), [(0.9, False), (0.2, True)])
def test_what_was_not_read_is_missing_only_if_it_may_be_later(path: Path, read: float, older: bool) -> None:
    """Once an earlier line is read, all later ones are."""
    write(path, *({"event": "later", "timestamp": "2026-11-20T04:11:06Z"} for _ in range(6)))
    after = datetime.fromisoformat("2026-11-20T04:11:05Z")
    lines = lines_of(path, LogRequest(TAIL, "m", 0.0), after=after, most_bytes=int(path.stat().st_size * read))
    lines.existing()
    assert lines.older is older
    lines.close()


@pytest.mark.parametrize("speech", [False, True])
def test_what_people_said_is_not_told(tmp_path: Path, speech: bool) -> None:
    """Whatever the log has of it, and all that is told can be shown."""
    path = tmp_path / "roomtone.jsonl"
    said = "the blue bicycle"
    write(
        path,
        {"event": "turn_recorded", "text": said, "error": f"no answer to '{said}'", "nested": {"words": [said]}},
        {"event": "one", "detail": "fine", "session_id": "s"},
        {"event": "long", "detail": "x" * 9_000},
    )
    if speech:
        write(
            path,
            {"event": "failed", "exception": f"Traceback\nKeyError: '{said}'", "error": f"could not parse {said}"},
            {"event": "library_logged", "detail": f"could not parse {said}", "problem": f"no {said}"},
        )
    lines = lines_of(path, LogRequest(TAIL, "m", 0.0), speech=speech)
    told = lines.existing()
    assert said not in "".join(told)
    assert all(event_in(line) is not None for line in told)
    assert json.loads(told[1])["detail"] == "fine"
    assert json.loads(told[2])["cut_chars"] > 9_000
    lines.close()


def test_it_gives_up_when_the_process_ends(tmp_path: Path) -> None:
    """Between two pieces of a large log."""
    path = tmp_path / "roomtone.jsonl"
    write(path, *({"event": "one", "detail": "x" * 200} for _ in range(1_000)))
    lines = lines_of(path, LogRequest(TAIL, "m", 0.0), pause=lambda _: True)
    assert 0 < len(lines.existing()) < 1_000
    lines.close()
