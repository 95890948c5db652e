"""The log of a room on another machine is in the log of the gateway process, and a broken room cannot harm that."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.logs.log_file import log_path
from bot.logs.output import configured_logging
from bot.remote.gateway_side.reported_log import SAY_EVERY_S, ReportedLog, event_in, follow_log
from bot.remote.link.handlers import Handlers
from bot.remote.messages.log_messages import (
    LINES_PER_S,
    MOST_CHARS,
    MOST_LINE_CHARS,
    MOST_LINES,
    FollowLog,
    LogLine,
    LogTold,
)
from bot.remote.room_side.room_log import MOST_WAITING, RoomLog, RoomLogs
from bot.settings import LogsSettings
from tests.bot.remote.peers import linked, until
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from bot.remote.messages.frames import Notice
    from tests.bot.remote.peers import Ends

FOLDER = "the folder of the gateway process"
log = structlog.get_logger()


class Link:
    """A link whose other end is the test."""

    def __init__(self) -> None:
        self.handlers = Handlers()
        self.is_open = True
        self.told: list[LogTold] = []
        self.opened: list[Callable[[], None]] = []

    def on_opened(self, call: Callable[[], None]) -> None:
        """Keep the call."""
        self.opened.append(call)

    def tell(self, notice: Notice) -> None:
        """Keep the notice."""
        assert isinstance(notice, LogTold)
        self.told.append(notice)

    def follow(self, folder: str = FOLDER) -> None:
        """Ask for the room's lines."""
        _, hear = self.handlers.hears[FollowLog.__name__]
        hear(FollowLog(folder))

    def lines(self) -> list[str]:
        """Return all lines that were told."""
        return [line.line for told in self.told for line in told.lines]


class Room:
    """A room whose data folder has the mark `folder`."""

    def __init__(self, folder: str = "another") -> None:
        self.clock = FakeClock()
        self.link = Link()
        self.log = RoomLog(cast("Any", self.link), self.clock, is_same_log=lambda mark: mark == folder)


def line_of(event: str = "turn_recorded", /, **fields: object) -> str:
    """Return a line as a room's machine writes it."""
    return json.dumps({"timestamp": "2026-11-20T04:11:05Z", "level": "info", "event": event, **fields})


# -- the room's process -----------------------------------------------------------------------------------------------


def test_a_room_tells_its_lines_once_it_is_asked() -> None:
    """Each once and in order, with its age. What was written before stays on its machine."""
    room = Room()
    room.log.add("before")
    room.link.follow()
    room.log.add("first")
    room.clock.advance(3.0)
    room.log.add("second")
    room.log.tell()
    room.log.tell()
    assert room.link.told == [LogTold((LogLine("first", 3.0), LogLine("second", 0.0)))]


def test_a_process_that_writes_to_the_same_file_tells_nothing() -> None:
    """The line is there already."""
    room = Room(folder=FOLDER)
    room.link.follow()
    room.log.add("first")
    room.log.tell()
    assert (room.link.told, room.log.waiting) == ([], 0)


def test_lines_wait_while_the_gateway_process_is_away() -> None:
    """The oldest are dropped, and how many is told first. Another gateway process has to ask again."""
    room = Room()
    room.link.follow()
    room.link.is_open = False
    for number in range(MOST_WAITING + 7):
        room.log.add(str(number))
    room.log.tell()
    assert (room.link.told, room.log.waiting) == ([], MOST_WAITING)
    room.link.is_open = True
    for call in room.link.opened:
        call()
    room.log.tell()
    assert room.link.told == []
    room.link.follow()
    while room.log.waiting:
        room.log.tell()
        room.clock.advance(1.0)
    assert room.link.lines() == [str(number) for number in range(7, MOST_WAITING + 7)]
    assert [told.dropped for told in room.link.told] == [7, *[0] * (len(room.link.told) - 1)]


def test_a_room_tells_no_more_than_it_may() -> None:
    """So many lines and characters in a message, and so many lines a second, however often it tells."""
    room = Room()
    room.link.follow()
    for _ in range(MOST_WAITING):
        room.log.add("a" * (MOST_LINE_CHARS // 4))
    for _ in range(50):
        room.log.tell()
    assert len(room.link.lines()) == MOST_LINES
    assert all(sum(len(line.line) for line in told.lines) <= MOST_CHARS for told in room.link.told)
    room.clock.advance(1.0)
    for _ in range(50):
        room.log.tell()
    assert len(room.link.lines()) == MOST_LINES + LINES_PER_S


def test_a_long_traceback_is_told_by_its_end() -> None:
    """A line that is long for another reason is dropped and counted."""
    room = Room()
    room.link.follow()
    room.log.add(line_of("room_crashed", exception="a call\n" * 5_000 + "StoreError: The disk is full."))
    room.log.add(line_of(note_ids=["n"] * 5_000))
    room.log.tell()
    (told,) = room.link.told
    (event,) = [json.loads(line.line) for line in told.lines]
    assert event["exception"].endswith("StoreError: The disk is full.")
    assert (event["event"], told.dropped) == ("room_crashed", 1)


@pytest.mark.asyncio
async def test_a_line_goes_with_the_room_that_wrote_it() -> None:
    """Also from a task or a thread that it has started. What no room wrote goes with the oldest that is followed."""
    rooms, logs = [Room() for _ in range(3)], RoomLogs()
    done = asyncio.Event()

    async def write(name: str) -> None:
        logs.take(name)
        await asyncio.create_task(asyncio.to_thread(logs.take, f"{name} thread"))

    async def run(number: int) -> None:
        with logs.of_room(rooms[number].log):
            if number:
                rooms[number].link.follow()
            await asyncio.create_task(write(str(number)))
            await done.wait()

    running = [asyncio.create_task(run(number)) for number in range(3)]
    await until(lambda: [room.log.waiting for room in rooms] == [0, 2, 2])
    logs.take("nobody's")
    assert (logs.queue.waiting, logs.queue.capacity) == (5, 3 * MOST_WAITING)
    done.set()
    await asyncio.gather(*running)
    for room in rooms:
        room.log.tell()
    assert [room.link.lines() for room in rooms] == [[], ["1", "1 thread", "nobody's"], ["2", "2 thread"]]
    logs.take("of no room")
    assert (logs.queue.waiting, dict(logs.queue.dropped)) == (0, {"full": 0})


# -- the gateway process ----------------------------------------------------------------------------------------------


def written_by(folder: Path, lines: list[str], *, dropped: int = 0, clock: FakeClock | None = None) -> list[Any]:
    """Return what is in the log of the gateway process after a room has told lines, and what is on its terminal."""
    console = io.StringIO()
    told = ReportedLog("north", clock or FakeClock())
    with configured_logging(LogsSettings(console_level="debug"), data_dir=folder, console=console):
        told.hear(LogTold(tuple(LogLine(line, 0.0) for line in lines), dropped))
    return [json.loads(line) for line in log_path(folder).read_text("utf-8").splitlines()]


def test_a_line_is_written_as_it_was_with_the_machine(tmp_path: Path) -> None:
    """Its time is that of this machine, by which the log is in order. Fields that a logger has itself are left out."""
    fields = {"session_id": "evening", "guild_id": 7, "latency_ms": 1.5, "tokens": {"summary": 3}, "text": None}
    (line,) = written_by(tmp_path, [line_of(**fields, exc_info=True, stack_info=True, machine="south")])
    assert {key: line[key] for key in fields} == fields
    assert (line["event"], line["level"], line["machine"]) == ("turn_recorded", "info", "north")
    assert line["timestamp"] > "2026-11-20T04:11:05Z"
    assert set(line) == {*fields, "event", "level", "machine", "timestamp"}


def test_what_a_room_quotes_all_the_same_is_withheld(tmp_path: Path) -> None:
    """A room's process that does not leave out what people said cannot put it into this log."""
    said = {
        "problem": "It heard 'we meet at nine'.",
        "error": "“we meet at nine”",
        "said": "we meet",
        "reason": "we meet",
    }
    (line,) = written_by(tmp_path, [line_of(**said)])
    assert "meet" not in json.dumps(line)
    assert line["problem"] == "It heard [17 characters withheld]."
    (line,) = written_by(tmp_path / "b", [line_of(problem="The disk is full.", reason="too_short")])
    assert (line["problem"], line["reason"]) == ("The disk is full.", "too_short")


def test_a_line_that_is_late_says_so(tmp_path: Path) -> None:
    """It has waited for the link; its own time stands in the log of its machine."""
    with configured_logging(LogsSettings(), data_dir=tmp_path, console=io.StringIO()):
        ages = (0.4, 31.26, float("inf"), float("nan"))
        ReportedLog("north", FakeClock()).hear(LogTold(tuple(LogLine(line_of(), age) for age in ages)))
    lines = [json.loads(line) for line in log_path(tmp_path).read_text("utf-8").splitlines()]
    assert [line.get("late_s") for line in lines] == [None, 31.3, None, None]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "[]",
        '"turn_recorded"',
        line_of("a" * 100),
        line_of("Turn recorded"),
        line_of(""),
        line_of(level="fatal"),
        line_of(level=["info"]),
        json.dumps({"level": "info"}),
        json.dumps({"level": "info", "event": 3}),
        line_of(_record=1),
        line_of(**{"a b": 1}),
        line_of(**{"\x1b[2J": 1}),
        line_of(**{"k" * 61: 1}),
        line_of(**{f"key_{number}": number for number in range(100)}),
        line_of(value=float("nan")),
        line_of(value=float("inf")),
        '{"level": "info", "event": "turn_recorded", "value": 1e999}',
        '{"level": "info", "event": "turn_recorded", "value": ' + "[" * 100 + "]" * 100 + "}",
        '{"level": "info", "event": "turn_recorded", "value": ' + "[" * 7_000,
        '{"level": "info", "event": "turn_recorded", "value": ' + "9" * 7_000 + "}",
        line_of(value="a b" * MOST_LINE_CHARS),
        line_of(detail="a" * 301),
        line_of(tokens={"a" * 301: 1}),
    ],
)
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    """Whatever it is."""
    assert event_in(line) is None


@settings(max_examples=50)
@given(
    st.dictionaries(st.text(max_size=8), st.recursive(st.none() | st.text() | st.floats(), st.lists, max_leaves=5)),
    st.text(max_size=8),
)
def test_whatever_comes_is_an_event_or_refused(fields: dict[str, Any], mess: str) -> None:
    """And no text in it can change a terminal or fail to be written."""
    for line in (line_of(**{key: value for key, value in fields.items() if key != "event"}), mess):
        event = event_in(line)
        if event is not None:
            text = json.dumps(event, ensure_ascii=False)
            text.encode()
            assert text.replace("\n", "").isprintable()


def test_no_text_changes_the_terminal(tmp_path: Path) -> None:
    """Control characters and halves of characters are replaced, in keys of fields of fields too."""
    (line,) = written_by(tmp_path, [line_of(detail="a\x1b[2Jb\nc", reason="\ud800", tokens={"\x1b": 1, "ok": 2})])
    assert (line["detail"], line["reason"]) == ("a\ufffd[2Jb\nc", "\ufffd")
    assert line["tokens"]["ok"] == 2
    assert "\\u001b" not in json.dumps(line)


def test_a_flood_fills_no_log(tmp_path: Path) -> None:
    """More than a room may tell is left out, and the log says how much, now and then."""
    clock, console = FakeClock(), io.StringIO()
    told = ReportedLog("north", clock)
    lines = tuple(LogLine(line_of(), 0.0) for _ in range(10 * MOST_LINES))
    with configured_logging(LogsSettings(), data_dir=tmp_path, console=console):
        for _ in range(100):
            told.hear(LogTold(lines))
        told.hear(LogTold((LogLine("nonsense", 0.0),), dropped=-5))
        clock.advance(SAY_EVERY_S)
        told.hear(LogTold((LogLine("nonsense", 0.0),), dropped=3))
    written = [json.loads(line) for line in log_path(tmp_path).read_text("utf-8").splitlines()]
    assert sum(line["event"] == "turn_recorded" for line in written) == 10 * MOST_LINES
    said = [line for line in written if line["event"] == "room_log_incomplete"]
    assert [line["refused"] for line in said] == [0, 1]
    assert sum(line["dropped"] for line in said) == 100 * len(lines) + 1 + 3 - 10 * MOST_LINES


def test_long_lines_fill_no_log_either(tmp_path: Path) -> None:
    """Of one message, no more characters than a room tells."""
    long = line_of(detail="a " * (MOST_LINE_CHARS // 2 - 100))
    written = written_by(tmp_path, [long] * MOST_LINES)
    assert sum(line["event"] == "turn_recorded" for line in written) == MOST_CHARS // len(long)
    assert written[-1]["refused"] == MOST_LINES - MOST_CHARS // len(long)


# -- both -------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def both(mark: str) -> AsyncIterator[tuple[Ends, RoomLog]]:
    """Yield both ends of a link, and the log of a room whose data folder has this mark."""
    clock, logs = FakeClock(), []
    async with linked(
        room=lambda end: logs.append(RoomLog(end, clock, is_same_log=lambda folder: folder == mark)),
        gateway=lambda link: follow_log(link, FOLDER, "north", clock),
    ) as ends:
        yield ends, logs[0]


@pytest.mark.asyncio
async def test_the_gateway_process_has_the_line_in_its_log(tmp_path: Path) -> None:
    """Over a real link."""
    with configured_logging(LogsSettings(), data_dir=tmp_path, console=io.StringIO()):
        async with both("another") as (_, room):
            await until(lambda: room.is_followed)
            room.add(line_of(session_id="evening", turn_seq=4))
            room.tell()
            await until(lambda: "turn_recorded" in log_path(tmp_path).read_text("utf-8"))
    lines = [json.loads(line) for line in log_path(tmp_path).read_text("utf-8").splitlines()]
    (line,) = [line for line in lines if line["event"] == "turn_recorded"]
    assert (line["machine"], line["session_id"], line["turn_seq"]) == ("north", "evening", 4)


@pytest.mark.asyncio
async def test_a_link_that_is_made_again_is_followed_again() -> None:
    """By the gateway process that is there then."""
    async with both("another") as (ends, room):
        await until(lambda: room.is_followed)
        await ends.drop()
        room.add(line_of())

        def told() -> bool:
            room.tell()
            return room.waiting == 0

        await until(told)
