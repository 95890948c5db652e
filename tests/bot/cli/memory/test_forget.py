"""`roomtone memory forget`: choosing a person and a turn, and the confirmation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.logs.log_file import log_path
from bot.server_settings import ServerSettings
from bot.store.backup import examine_backup
from bot.store.servers import SqlServerSettings
from compaction.model import TurnKind, TurnPart
from tests.bot.cli.memory.stored_evening import Answers, at_evening, told
from tests.bot.evening import Evening


@pytest.mark.usefixtures("data_dir")
def test_a_person_is_forgotten_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    """The output counts what was forgotten. Afterwards the person is unknown, and other people's words are
    still found.
    """
    out = told(capsys, "memory", "forget", "--person", "ada", "--yes")
    assert out.startswith("Forgotten: ")
    assert " facts in segments, in 1 session." in out
    assert "backups and exports" in out
    assert "Nobody called ada" in told(capsys, "memory", "forget", "--person", "ada", "--yes", status=1)
    assert "Nothing was found." in told(capsys, "memory", "search", "Lisbon")
    assert "4411" in told(capsys, "memory", "search", "gate code")


def test_a_database_that_a_restore_kept_aside_forgets_too(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It had everything that is forgotten now, and is whole without it. One that cannot be read is deleted."""
    told(capsys, "backup", "copy.db")
    told(capsys, "restore", "copy.db", "--yes")
    (aside,) = data_dir.glob("roomtone.db.before-*")
    damaged = data_dir / "roomtone.db.before-20200101T000000Z"
    damaged.write_bytes(aside.read_bytes()[:5000])
    assert b"Lisbon" in aside.read_bytes()
    told(capsys, "memory", "forget", "--person", "ada", "--yes")
    assert b"Lisbon" not in aside.read_bytes()
    assert examine_backup(aside).turns > 0
    assert list(data_dir.glob("roomtone.db.before-*")) == [aside]


@pytest.mark.usefixtures("data_dir")
def test_one_turn_is_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    """One turn of the person is removed. Naming another person's turn, or no session, gives an error message."""
    words = ("memory", "forget", "--person", "id-Bob", "--session", "even", "--yes", "--turn")
    assert told(capsys, *words, "1").startswith("Forgotten: 1 turn, ")
    assert "nothing of Bob" in told(capsys, *words, "0", status=1)
    out = told(capsys, "memory", "forget", "--person", "Bob", "--turn", "1", "--yes", status=2)
    assert "--turn needs --session" in out


@pytest.mark.usefixtures("data_dir")
@pytest.mark.parametrize(
    ("words", "option"),
    [(("--person", ""), "--person"), (("--person", "Bob", "--session", " "), "--session")],
)
def test_an_empty_variable_of_a_script_forgets_nothing(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], option: str
) -> None:
    """An empty session is not all sessions."""
    assert f"{option} is empty" in told(capsys, "memory", "forget", *words, "--yes", status=2)
    assert "4411" in told(capsys, "memory", "search", "gate code")


@pytest.mark.usefixtures("data_dir")
def test_it_asks_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command asks for confirmation and changes nothing if the answer is no."""
    monkeypatch.setattr("sys.stdin", Answers("n\n"))
    out = told(capsys, "memory", "forget", "--person", "Ada", status=130)
    assert "Ada (id-Ada) said in 1 session" in out
    assert "Lisbon" in told(capsys, "memory", "search", "Lisbon")


def test_an_id_that_a_failed_attempt_left_in_the_log_goes(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The database has nothing of the person by then."""
    person = "482915736640102939"

    async def another(evening: Evening) -> None:
        at = evening.clock.now() + 1e6
        part = TurnPart(person, "Cleo", "Hello.")
        await evening.timeline.append(TurnKind.SPEECH, (part,), started_at=at, ended_at=at)

    at_evening(data_dir, another)
    log = log_path(data_dir)
    rotated = log.with_name(f"{log.name}.1")
    rotated.mkdir(parents=True)
    words = ("memory", "forget", "--person", person, "--yes")
    assert "Forgotten" not in told(capsys, *words, status=1)
    rotated.rmdir()
    rotated.write_text(json.dumps({"event": "turn_recorded", "speaker_id": person}) + "\n", "utf-8")
    assert told(capsys, *words).startswith("Forgotten: 1 log line.")
    assert person not in rotated.read_text("utf-8")
    assert f"no id {person}" in told(capsys, *words, status=1)


def test_two_of_one_name_are_told_apart_by_id(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If two people have the same name, the command lists both ids and asks for one."""

    async def another(evening: Evening) -> None:
        at = evening.clock.now() + 1e6
        part = TurnPart("id-2", "Ada", "Hello.")
        await evening.timeline.append(TurnKind.SPEECH, (part,), started_at=at, ended_at=at)

    at_evening(data_dir, another)
    out = told(capsys, "memory", "forget", "--person", "Ada", "--yes", status=1)
    assert "2 people have been called Ada. Say which one by id:\n  id-2  Ada (2), 1 turn\n  id-Ada  Ada, " in out


def test_who_never_spoke_leaves_the_rules_of_servers(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person whom a server's settings only name is found by id and taken out of them."""

    async def named(evening: Evening) -> None:
        servers = SqlServerSettings(evening.database, evening.clock)
        await servers.put(1, ServerSettings(auto_join_with=(482915736640102939,)), by=None)

    at_evening(data_dir, named)
    words = ("memory", "forget", "--person", "482915736640102939", "--yes")
    assert told(capsys, *words).startswith("Forgotten: 1 server rule.")
    assert "Nobody called 482915736640102939" in told(capsys, *words, status=1)


@pytest.mark.usefixtures("data_dir")
def test_a_number_beyond_what_the_database_holds_is_nobody_and_no_turn(capsys: pytest.CaptureFixture[str]) -> None:
    """An id of 19 digits may need more than 63 bits."""
    person = "9" * 19
    assert f"no id {person}" in told(capsys, "memory", "forget", "--person", person, "--yes", status=1)
    words = ("memory", "forget", "--person", "Bob", "--session", "even", "--turn", str(2**63), "--yes")
    assert "--turn" in told(capsys, *words, status=2)
