"""`roomtone explain` as a person uses it: through the real log file and the real database."""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING

import pytest

from bot.logs.log_file import log_path
from bot.logs.output import configured_logging
from bot.settings import LogsSettings
from tests.bot.cli.memory.stored_evening import told
from tests.bot.evening import Evening
from tests.bot.memory.test_explain import an_evening, words
from tests.fakes.labelling_summariser import LabellingSummariser

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr

    from bot.brain.context import ModelContext


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[ModelContext]]:
    """A data folder with the log and database of an evening with seven replies, and the contexts that were
    really sent.
    """
    folder = tmp_path_factory.mktemp("data")

    with configured_logging(LogsSettings(), data_dir=folder, console=io.StringIO()):
        sent = asyncio.run(play_logged(folder / "roomtone.db"))
    return folder, sent


async def play_logged(place: Path | SecretStr) -> list[ModelContext]:
    """Play the evening with log lines and return the contexts that were sent."""
    async with Evening(place, summariser=LabellingSummariser()) as evening:
        return (await an_evening(evening, logged=True)).sent


@pytest.fixture(autouse=True)
def here(evening: tuple[Path, list[ModelContext]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty directory with settings for the evening's data folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(evening[0]))


def test_a_reply_is_explained_word_for_word(
    evening: tuple[Path, list[ModelContext]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every payload is rebuilt word for word from the log and the database, and the log has none of the words."""
    assert_explained(*evening, capsys)


@pytest.mark.slow
def test_it_is_the_same_on_postgresql(
    postgres_place: SecretStr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompts of an evening on a PostgreSQL server are rebuilt, too."""
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ROOMTONE_DATABASE_URL", postgres_place.get_secret_value())
    with configured_logging(LogsSettings(), data_dir=tmp_path, console=io.StringIO()):
        sent = asyncio.run(play_logged(postgres_place))
    assert not (tmp_path / "roomtone.db").exists()
    assert_explained(tmp_path, sent, capsys)


def assert_explained(folder: Path, sent: list[ModelContext], capsys: pytest.CaptureFixture[str]) -> None:
    """Check that each prompt is rebuilt as it was sent, and that the log has nothing that was said."""
    assert len(sent) == 7
    for context in sent:
        told_json = json.loads(told(capsys, "explain", "even", "--turn", str(context.current.seq), "--json"))
        assert told_json["exact"] is True
        assert [(part["role"], part["content"]) for part in told_json["payload"]] == words(context.parts)
        assert sum(told_json["tokens"].values()) == sum(part.tokens for part in context.parts)
    log = log_path(folder).read_text("utf-8")
    assert "model_context_built" in log
    assert "withheld" not in log
    assert "Lisbon" not in log
    assert "parcel" not in log


def test_it_reads_well(evening: tuple[Path, list[ModelContext]], capsys: pytest.CaptureFixture[str]) -> None:
    """The output has the tokens of each part, the verdict, and each fact behind the summary with its turns."""
    last = evening[1][-1].current.seq
    out = told(capsys, "explain", "evening", "--turn", str(last))
    assert f"the reply to turn {last}, built " in out
    assert "tokens: system " in out
    assert "Nothing was left out." in out
    assert "exactly the parts below (the digest in the log matches)" in out
    assert "participants  user" in out
    assert "evening:0-10 (turns 0-9, by labelling.v1)" in out
    assert "Ada: I live in Lisbon, and the gate code is 4411." in " ".join(out.split())
    assert out == told(capsys, "explain", "evening", "--turn", str(last + 1))


def test_what_differs_is_not_called_exact(
    evening: tuple[Path, list[ModelContext]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A prompt whose digest is another one is not shown as what was sent, and messages of a call that nobody has stored
    are shown as missing.
    """
    folder, sent = evening
    turn = sent[-1].current.seq
    lines = [json.loads(line) for line in log_path(folder).read_text("utf-8").splitlines()]
    (built,) = [line for line in lines if line["event"] == "model_context_built" and line["answer_to"] == turn]
    call = {"event": "model_call_sent", "session_id": "evening", "answer_to": turn, "message_digests": ["0" * 16]}
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(each) + "\n" for each in (built | {"digest": "0" * 16}, built | call)))
    ask = ("explain", "evening", "--turn", str(turn), "--file", str(log))
    out = " ".join(told(capsys, *ask).split())
    assert "was NOT made of exactly the parts below" in out
    assert "exactly the parts below (the digest in the log matches)" not in out
    assert "1 message left the process, 0 of them parts as above; NOT all of the others are stored any more." in out
    shown = json.loads(told(capsys, *ask, "--json"))
    assert (shown["exact"], shown["calls"][0]["exact"], shown["calls"][0]["messages"]) == (False, False, [None])


def test_a_session_is_explained_as_a_whole(
    evening: tuple[Path, list[ModelContext]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a turn, the command lists the session's replies and explains the current summary, or one fact of it."""
    out = told(capsys, "explain", "evening")
    for context in evening[1]:
        assert f"turn {context.current.seq}  " in out
    assert "The summary now:" in out
    found = json.loads(told(capsys, "explain", "evening", "--fact", "gate code", "--json"))
    assert "4411" in found["summary"]
    assert found["facts"]
    for known in found["facts"]:
        assert "4411" in known["text"]
        assert known["segment"] == "evening:0-10"
        assert [turn["seq"] for turn in known["turns"]] == [0]
    assert "4411" in told(capsys, "explain", "evening", "--fact", "4411")
    missing = told(capsys, "explain", "evening", "--fact", "gate hippopotamus")
    assert "“gate hippopotamus”" in missing


def test_speech_to_speech_is_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Speech-to-speech replies are listed; context sent between replies is not."""
    line: dict[str, object] = {
        "event": "model_context_built",
        "session_id": "evening",
        "timestamp": "2026-05-03T21:04:00+00:00",
        "tokens": {"system": 300, "participants": 12, "turn": 20},
        "total_tokens": 332,
        "summary_revision": 0,
        "as_sent": ["participants:0123456789abcdef"],
        "seq_from": 1,
        "seq_to": 3,
    }
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({**line, "answer_to": None}) + "\n")
    out = told(capsys, "explain", "evening", "--turn", "3", "--file", str(log), status=1)
    assert "has no reply of session evening" in out
    with log.open("a") as file:
        file.write(json.dumps({**line, "answer_to": 3}) + "\n")
    out = told(capsys, "explain", "evening", "--file", str(log))
    assert out.count(" tokens  summary ") == 1
    assert "turn 3, by speech-to-speech  332 tokens" in out
    assert "the reply to turn 3, by speech-to-speech, built" in told(
        capsys, "explain", "evening", "--turn", "3", "--file", str(log)
    )
    assert len(json.loads(told(capsys, "explain", "evening", "--file", str(log), "--json"))["replies"]) == 1


def test_what_cannot_be_explained_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown session, an unanswered turn, a log without the session and a number that no turn has each give a
    plain sentence.
    """
    assert "There is no session nope." in told(capsys, "explain", "nope", status=1)
    out = told(capsys, "explain", "evening", "--turn", "5", status=1)
    assert "Turn 5 of session evening was not answered" in out
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"event": "model_context_built", "session_id": "evening", "tokens": 7}\nrubbish\n')
    out = told(capsys, "explain", "evening", "--turn", "5", "--file", str(empty), status=1)
    assert "has no reply of session evening" in out
    assert "--turn" in told(capsys, "explain", "evening", "--turn", str(2**63 - 1), status=2)
