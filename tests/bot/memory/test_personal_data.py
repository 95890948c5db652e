"""After a person is forgotten, no byte of the data folder has their id, their name, three of their words in a row, or
anything from which these could be computed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.logs.log_file import forget_in_logs, log_path
from bot.logs.output import configured_logging
from bot.memory.personal_data import WIPE_PAUSE_S, PersonForgetter
from bot.store.backup import write_backup
from bot.store.database import Database, open_database
from bot.store.servers import SqlServerSettings
from bot.store.speakers import StoredSpeaker
from compaction.errors import StoreError
from compaction.model import Seq, SessionId
from tests.bot.evening import GUILD, Evening
from tests.bot.planted_person import (
    LATER,
    NAME,
    PERSON,
    WORDS,
    RestatingSummariser,
    answers,
    fill,
    note_fact,
    quotes,
    runs,
    says,
    talk,
)
from tests.fakes.clock import FakeClock


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the bytes of a folder's files."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def traces(folder: Path) -> list[str]:
    """Return what the files of a folder still have of the person."""
    told = {run for text in WORDS for run in runs(text, 3)}
    found: list[str] = []
    for name, content in files_in(folder).items():
        text = content.decode("utf-8", "replace").casefold()
        found += [f"{name}: {each}" for each in (PERSON, NAME) if each.casefold() in text]
        # SQLite stores the id in eight bytes where its column is a number.
        found += [f"{name}: {PERSON}"] * content.count(int(PERSON).to_bytes(8, "big"))
        found += [f"{name}: {' '.join(run)}" for run in told.intersection(runs(text, 3))]
    return found


def guesses() -> Iterator[bytes]:
    """Yield the beginnings of digests of all runs of one to six of the person's words, of their turns, and of the id:
    what somebody computes who tries whether a database has them.
    """
    said = {PERSON, NAME, *WORDS}
    for text in WORDS:
        for length in range(1, 7):
            for run in runs(text, length):
                said |= {" ".join(run), "".join(run)}
    for text in said:
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
            yield hashlib.new(name, text.encode()).digest()[:8]
        for size in (8, 12, 16, 20):
            yield hashlib.blake2b(text.encode(), digest_size=size).digest()[:8]
            yield hashlib.blake2s(text.encode(), digest_size=size).digest()[:8]


@cache
def tried() -> frozenset[bytes]:
    """Return the guesses as bytes and in hexadecimal."""
    return frozenset(each for digest in guesses() for each in (digest, digest.hex().encode()))


def guessed(folder: Path) -> list[str]:
    """Return which files of a folder have such a digest."""
    return [name for name, content in files_in(folder).items() if has_digest(content)]


def has_digest(content: bytes) -> bool:
    """Look at every place. As numbers of eight bytes, a hundred times as fast as one by one."""
    begins = np.frombuffer(b"".join(each[:8] for each in tried()), dtype="<u8")
    for first in range(8):
        numbers = np.frombuffer(content[first : len(content) - (len(content) - first) % 8], dtype="<u8")
        for found in np.flatnonzero(np.isin(numbers, begins)):
            at = first + 8 * int(found)
            if {content[at : at + 8], content[at : at + 16]} & tried():
                return True
    return False


def write_log(folder: Path) -> None:
    """Write a log of the evening."""
    with configured_logging(folder):
        log = structlog.get_logger()
        log.info("turn_recorded", session_id="evening", speaker_id=int(PERSON), seq=0, text=WORDS[0])
        log.info("person_joined", session_id="evening", name=NAME, user_id=PERSON)
        log.info("reply_sent", session_id="evening", text=f"They said: {WORDS[1]}")
        log.info("turn_recorded", session_id="quiet", speaker_id=7, text="It will rain at nine.")
        log.info("screen_share_started", session_id="evening", user_id=int(PERSON))
        log.info("model_context_built", session_id="evening", digest=hashlib.sha256(WORDS[0].encode()).hexdigest())
        log.info("reply_spoken", session_id="evening", seconds=3)


async def test_no_byte_of_a_forgotten_person_stays(tmp_path: Path) -> None:
    """A person's id, name and words, planted everywhere, are in no byte of the data folder while the database is open,
    nor of a backup that is made then. Nothing is there from which they could be guessed. What other people said stays.
    """
    data = tmp_path / "data"
    data.mkdir()
    path = data / "roomtone.db"
    write_log(data)
    async with Evening(path, clock=FakeClock(LATER), summariser=RestatingSummariser()) as evening:
        await fill(evening)
        stored = await evening.store.load(evening.session_id)
        assert any("zanzibarq" in each.gist.casefold() for each in stored.segments if not each.pruned)
        async with Evening(path, name="later", clock=evening.clock, summariser=RestatingSummariser()) as later:
            await later.say("Bot, who likes parrots?", "Bob")
            quotes(later, evening.session_id, 0)
            await answers(later, f"{NAME} does. {WORDS[0]}", to=0)
            await talk(later, 62)
            await later.upkeep.run_once()
        async with Evening(path, name="quiet", clock=evening.clock) as quiet:
            await quiet.say("It is late.", "Bob")
            await note_fact(quiet.database, quiet.session_id)
        aside = data / "roomtone.db.before-20260101T000000Z"
        write_backup(path, aside)
        before = traces(data)
        assert any(each.startswith(aside.name) for each in before)
        assert {each.split(": ")[1] for each in before} >= {PERSON, NAME, "live in zanzibarq", "my boat is"}
        assert guessed(data)

        forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log_path(data).parent)
        (person,) = await forgetter.speech.find(PERSON)
        done = await forgetter.forget(person)
        assert await evening.database.wipe()
        assert done.stored.rules == 1
        assert (await SqlServerSettings(evening.database, evening.clock).all())[GUILD].auto_join_with == (7,)
        assert set(done.stored.sessions) == {evening.session_id, SessionId("later")}
        assert done.log_lines == 3
        backups = tmp_path / "backups"
        backups.mkdir()
        write_backup(path, backups / "later.db")
        for folder in (data, backups):
            assert traces(folder) == []
            assert guessed(folder) == []

        kept = {int(turn.seq): turn for turn in await evening.store.turns(evening.session_id, Seq(0), Seq(12))}
        assert [seq for seq, turn in kept.items() if turn.tombstone] == [0, 3, 4, 6, 8, 10]
        assert kept[7].parts[0].text == "Bot, will it rain?"
        assert [part.text for part in kept[9].parts] == ["We leave at ten."]
        log = log_path(data).read_text("utf-8")
        assert [json.loads(line)["event"] for line in log.splitlines()] == [
            "reply_sent",
            "turn_recorded",
            "model_context_built",
            "reply_spoken",
        ]
        assert await forgetter.speech.find(PERSON) == ()


class Outage:
    """A database that takes `writes` write transactions and then none until it `is_over`."""

    def __init__(self, writes: int) -> None:
        self._left = writes
        self.is_over = False

    async def check(self, _: AsyncConnection) -> None:
        """Refuse a write transaction during the outage."""
        self._left -= 1
        if self._left < 0 and not self.is_over:
            raise StoreError("The database is away.")


async def test_an_interrupted_attempt_is_finished_by_the_next(file: Path) -> None:
    """Wherever the database goes away, the second attempt leaves nothing: no quotation of the bot in another session,
    and no log line. Which sessions had changed is told.
    """
    made, evening, later = file.parent / "made", SessionId("evening"), SessionId("telling")
    made.mkdir()
    shutil.move(file, made / "a.db")
    write_log(made)
    async with Evening(made / "a.db", clock=FakeClock(LATER)) as own:
        await says(own, WORDS[0])
        await says(own, WORDS[1])
        async with Evening(made / "a.db", name=later, clock=own.clock, channel=702) as telling:
            await telling.say("Bot, who likes parrots?", "Bob")
            quotes(telling, evening, 0)
            await answers(telling, f"{NAME} does. {WORDS[0]}")
            await telling.upkeep.run_once()
    for writes in range(50):
        data = made.with_name(str(writes))
        shutil.copytree(made, data)
        async with open_database(data / "a.db", synchronous="normal") as database:
            outage, changed, failed = Outage(writes), list[SessionId](), False
            log_folder = log_path(data).parent
            forgetter = PersonForgetter(database.checked(outage.check), own.clock, log_folder=log_folder)
            (person,) = await forgetter.speech.find(PERSON)
            try:
                await forgetter.forget(person, changed=changed)
                outage.is_over = True
            except StoreError:
                failed = outage.is_over = True
                # In another process.
                forgetter = PersonForgetter(database, own.clock, log_folder=log_folder)
                again = await forgetter.speech.find_by_id(PERSON) or StoredSpeaker(PERSON, (), 0.0, 0, ())
                await forgetter.forget(again, changed=changed)
            assert sorted(changed) == [evening, later]
            assert await database.wipe()
            assert traces(data) == []
        if not failed:
            break
    assert writes >= 4
    assert not failed


async def test_a_log_that_fails_is_cleaned_by_the_next_attempt(evening: Evening, tmp_path: Path) -> None:
    """The words have left the store by then. The list of forgotten sessions says which lines go."""
    log = log_path(tmp_path)
    rotated = log.with_name(f"{log.name}.1")
    await says(evening, WORDS[0])
    rotated.mkdir(parents=True)
    forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log.parent)
    (person,) = await forgetter.speech.find(PERSON)
    with pytest.raises(IsADirectoryError):
        await forgetter.forget(person)
    assert await forgetter.speech.find_by_id(PERSON) is None
    rotated.rmdir()
    line = {"event": "turn_recorded", "session_id": evening.session_id, "speaker_id": int(PERSON)}
    rotated.write_text(json.dumps(line) + "\n", "utf-8")
    assert (await forgetter.forget(StoredSpeaker(PERSON, (), 0.0, 0, ()))).log_lines == 1
    assert await evening.database.wipe()
    assert traces(tmp_path) == []


@pytest.mark.parametrize(
    ("line", "goes"),
    [
        ({"speaker_id": int(PERSON), "seq": 3}, True),
        ({"user_ids": [7, PERSON]}, True),
        ({"path": f"/x/{PERSON}0"}, False),
        ({"session_id": "theirs", "seconds": 3}, False),
    ],
)
def test_log_lines_go_by_person(tmp_path: Path, line: dict[str, object], *, goes: bool) -> None:
    """A line goes that has the person's id."""
    log = log_path(tmp_path)
    log.parent.mkdir()
    log.write_text(json.dumps({"timestamp": "2026-01-02T20:00:00Z", **line}) + "\n", "utf-8")
    assert forget_in_logs(log.parent, PERSON) == goes
    assert bool(log.read_text("utf-8")) is not goes


class Wipes:
    """Counts the calls of `Database.wipe`. `error`: raise it instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.error: StoreError | None = None
        wipe = Database.wipe

        async def counted(database: Database) -> bool:
            self.count += 1
            if self.error is not None:
                raise self.error
            return await wipe(database)

        monkeypatch.setattr(Database, "wipe", counted)


async def test_many_who_are_forgotten_have_one_wipe_at_a_time(
    evening: Evening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is wiped at once. Who comes within the pause is told that bytes may be left, and the next wipe after it
    takes these too. A wipe that fails forgets all the same, and a stranger begins none.
    """
    wipes = Wipes(monkeypatch)
    for text in WORDS[:2]:
        await says(evening, text)
    for name in ("Bob", "Cy", "Dee"):
        await evening.say(f"Xylander{name} lives here.", name)
    forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log_path(tmp_path).parent)

    async def forget(who: str) -> bool:
        (person,) = await forgetter.speech.find(who)
        return (await forgetter.forget(person)).wiped

    stranger = StoredSpeaker("190120030040050607", (), 0.0, 0, ())
    assert not (await forgetter.forget(stranger)).wiped
    assert wipes.count == 0, "of whom nothing is stored, nothing is wiped"
    assert await forget(PERSON)
    assert traces(tmp_path) == []
    assert not await forget("Bob")
    assert wipes.count == 1
    evening.clock.advance(WIPE_PAUSE_S)
    assert await forget("Cy")
    assert wipes.count == 2
    held = b"".join(files_in(tmp_path).values()).lower()
    assert [name in held for name in (b"xylanderbob", b"xylandercy", b"xylanderdee")] == [False, False, True]
    evening.clock.advance(WIPE_PAUSE_S)
    wipes.error = StoreError("The disk is full.")
    assert not await forget("Dee")
    assert wipes.count == 3
    assert await forgetter.speech.find("Dee") == ()
