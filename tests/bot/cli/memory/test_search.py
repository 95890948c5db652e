"""`roomtone memory search` on a database with two evenings in it."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bot.cli.app import run_command_line
from bot.store.database import open_database
from tests.bot.store.search.searched_room import SearchedRoom
from tests.compaction.memory.recall_index_contract import ELSEWHERE, EVENING, SAID, segment, turn


@pytest.fixture(scope="module")
def two_evenings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a database of two sessions."""
    folder = tmp_path_factory.mktemp("data")

    async def fill() -> None:
        async with open_database(folder / "roomtone.db") as database:
            room = SearchedRoom(database)
            await room.add(EVENING, *SAID, turn(6, "Actually we booked three rooms in Lisbon.", "Bob"))
            first = segment(3, 6, "Rooms.", "We booked two rooms in Lisbon.")
            later = segment(6, 7, "More rooms.", "We booked three rooms in Lisbon.")
            closing = replace(later.facts[0], closes=(f"{first.id}#0",))
            await room.add(EVENING, segment(0, 3, "A lighthouse."), first, replace(later, facts=(closing,)))
            await room.add(ELSEWHERE, turn(0, "Lisbon is far."))

    asyncio.run(fill())
    return folder


@pytest.fixture(autouse=True)
def here(two_evenings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory; the settings use the database without an embedder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(two_evenings))


def searched(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what the command prints."""
    assert run_command_line(["memory", "search", *words]) == 0
    return capsys.readouterr().out


def test_what_was_said_is_printed_with_who_and_when(capsys: pytest.CaptureFixture[str]) -> None:
    """A found turn is printed with its speaker, session and turn number."""
    out = searched(capsys, "closed lighthouse", "--limit", "1")
    assert "session evening, turn 2." in out
    assert "Ada Lovelace: The lighthouse is closed until May." in out
    assert "Nothing" in searched(capsys, "zeppelin")


def test_filters_are_options(capsys: pytest.CaptureFixture[str]) -> None:
    """Results can be limited by speaker and time, and an empty query lists the newest turns."""
    found = json.loads(searched(capsys, "", "--speaker", "lovelace", "--until", "2025-10-10", "--json", "--limit", "2"))
    assert [(each["session"], each["seq"]) for each in found] == [("elsewhere", 0), ("evening", 2)]
    assert json.loads(searched(capsys, "lisbon", "--since", "1h", "--json")) == []


def test_a_session_is_named_by_how_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    """The beginning of a session's id is enough. An unknown or ambiguous one ends with exit status 2 and a sentence."""
    found = json.loads(searched(capsys, "lisbon", "--session", "eve", "--json"))
    assert {each["session"] for each in found} == {"evening"}
    assert run_command_line(["memory", "search", "lisbon", "--session", "e"]) == 2
    assert "Give more of the id" in " ".join(capsys.readouterr().err.split())
    assert run_command_line(["memory", "search", "lisbon", "--session", "night"]) == 2
    assert "There is no session night" in " ".join(capsys.readouterr().err.split())


def test_what_is_shown_counts_as_read(capsys: pytest.CaptureFixture[str]) -> None:
    """What people look for is not cold, so it is kept as it is for longer."""

    def found() -> list[str]:
        assert run_command_line(["memory", "list", "evening"]) == 0
        return re.findall(r"->.*?\d+ +\d+ +(\d+)", capsys.readouterr().out)

    before = found()
    searched(capsys, "lisbon", "--session", "evening")
    assert found() != before
