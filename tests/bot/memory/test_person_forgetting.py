"""After a person is forgotten, no byte of the data folder has their id, their names or six of their words in a row."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pytest
import structlog
from sqlalchemy import func, insert, select

from bot.guild import GuildChoice
from bot.logs.log_file import log_path
from bot.logs.output import configured_logging
from bot.logs.removal import FORGOTTEN_VALUE, forget_in_logs
from bot.memory.admin import MemoryAdmin
from bot.memory.person_forgetting import MOST_UNFINISHED, PersonForgetter
from bot.server_settings import ServerSettings
from bot.settings import LogsSettings
from bot.store.database import Database
from bot.store.dialects.sqlite import SqliteDialect
from bot.store.guilds import GuildStore
from bot.store.search.vector_store import VectorStore
from bot.store.segment_import import SegmentImporter, SegmentImportError
from bot.store.servers import SqlServerSettings
from bot.store.speakers import StoredSpeaker
from bot.store.tables import forgotten_runs, person_facts
from bot.store.wiping import wipe_if_due
from compaction.errors import StoreError
from compaction.memory.export_format import read_paragraph, read_record, segment_json
from compaction.memory.restating import forgotten_words
from compaction.model import Fact, FactKind, Note, NoteId, Seq, SessionId, TurnKind, TurnPart
from compaction.summary.port import Fold
from tests.bot.evening import GUILD, Evening

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.summary.port import FoldRequest

PERSON = "482915736640102939"
NAMES = ("Quillfeather", "Will")
WORDS = (
    "I live in Zanzibarq with my aunt Petronella and her nine parrots.",
    "My boat is moored behind the old lighthouse at Wickhamq since last spring.",
    "The doctor says that I must not eat walnuts or Hazelq butter any more.",
    "In May I will marry the captain of the ferry to Ostendq.",
)
# Words that nobody else says.
RARE = ("zanzibarq", "wickhamq", "hazelq", "ostendq", "petronella")


class RestatingSummariser:
    """A model that tells again, in every fold, all that it has ever read of the person."""

    name, model = "llm", "restating"

    async def fold(self, request: FoldRequest) -> Fold:
        """Return a fold whose gist, paragraph and facts of other people restate the earlier summary."""
        read = [part.text for turn in (*request.before, *request.turns) for part in turn.parts]
        told = self._told(" ".join((request.previous or "", *read)))
        # Half of the folds show only by one word that they tell of the person.
        veiled = told and f"The matter of {RARE[0]} goes on."
        text = told if request.start % 20 else veiled
        facts = tuple(
            Fact((turn.seq,), text, FactKind.LASTING, 2, (), "Bob", turn.started_at, "Bob")
            for turn in request.turns[-1:]
            if text
        )
        return Fold(text or "They talked.", facts, text or "They talked.", "fold.v1")

    def _told(self, text: str) -> str:
        rare = [word for word in RARE if word in text.casefold()]
        about = f"Quillfeather has to do with {' and '.join(rare)}. " if rare else ""
        return about + (f"Will said: {WORDS[0]}" if "zanzibarq" in rare else "")


def sixes(text: str) -> Iterator[tuple[str, ...]]:
    """Yield every six words in a row."""
    words = re.findall(r"[^\W_]+", text.casefold())
    for at in range(len(words) - 5):
        yield tuple(words[at : at + 6])


def traces(folder: Path) -> list[str]:
    """Return what the bytes of a folder's files still have of the person."""
    told = {run for text in WORDS for run in sixes(text)}
    found: list[str] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.name}: {each}" for each in (PERSON, NAMES[0]) if each.casefold() in text.casefold()]
        # SQLite stores the id in eight bytes where its column is a number.
        found += [f"{path.name}: {PERSON}"] * path.read_bytes().count(int(PERSON).to_bytes(8, "big"))
        found += [f"{path.name}: {each}" for each in RARE if each in text.casefold()]
        found += [f"{path.name}: Will" for _ in re.finditer(r"\bWill\b(?! it )", text)]
        found += [f"{path.name}: {' '.join(run)}" for run in told.intersection(sixes(text))]
    return found


async def says(evening: Evening, text: str, name: str = NAMES[0]) -> None:
    """Let the person say something."""
    evening.clock.advance(4.0)
    now = evening.clock.now()
    part = TurnPart(PERSON, name, text)
    await evening.memory.append(TurnKind.SPEECH, (part,), started_at=now, ended_at=now + 2.0)


async def answers(evening: Evening, text: str, to: int | None = None) -> None:
    """Let the bot say something. `to`: the turn that it answers, if that is stored."""
    evening.clock.advance(4.0)
    now = evening.clock.now()
    part = TurnPart("assistant", "Roomtone", text)
    seq = None if to is None else Seq(to)
    await evening.memory.append(TurnKind.ASSISTANT, (part,), started_at=now, ended_at=now + 2.0, answers=seq)


async def talk(evening: Evening, turns: int) -> None:
    """Let Bob and Cy talk; what is due is folded."""
    for _ in range(turns):
        number = evening.memory.total_turns
        await evening.say(f"I put parcel {number} into shed {5000 + number}.", "Bob" if number % 2 else "Cy")
        evening.memory.context(max_input_tokens=evening.max_input_tokens)
        await evening.memory.settle()


async def fill(evening: Evening) -> None:
    """Put the person's id, names and words into everything that a session stores."""
    await says(evening, WORDS[0])
    await evening.say("Bot, is it far?", "Bob")
    await evening.say("It will rain. Will it rain at nine?", "Cy")
    await answers(evening, "It is far: a whole ocean lies between.", to=0)
    await says(evening, WORDS[1], "Will")
    await evening.say("Bot, what do you know of the harbour?", "Bob")
    await answers(evening, "A boat lies by the lighthouse of Wickhamq, people say.", to=5)
    await evening.say("Bot, will it rain?", "Cy")
    await answers(evening, "It will rain at nine.", to=7)
    both = (TurnPart("id-Bob", "Bob", "We leave at ten."), TurnPart(PERSON, NAMES[0], WORDS[2]))
    at = evening.clock.now() + 4.0
    await evening.memory.append(TurnKind.SPEECH, both, started_at=at, ended_at=at)
    await answers(evening, "As Will told us, walnuts are out.", to=9)
    await evening.memory.add_note(Note(NoteId("n1"), at, NAMES[0], "A mail to Petronella in Zanzibarq."))
    await evening.memory.add_note(Note(NoteId("n2"), at, "Bob", "A picture of a cat."))
    await evening.memory.retire_live_notes()
    await talk(evening, 60)
    await says(evening, WORDS[3])
    await talk(evening, 90)
    await evening.memory.add_note(Note(NoteId("n3"), at, NAMES[0], "A map of Ostendq."))
    await evening.upkeep.run_once(through=evening.memory.total_turns)
    await evening.upkeep_check()
    first, second, *_ = await evening.tier_store.tiers_of(evening.session_id)
    await evening.tier_store.archive(evening.session_id, [first.kept.segment.id], now=at)
    await evening.tier_store.archive(evening.session_id, [second.kept.segment.id], now=at)
    await evening.tier_store.prune({evening.session_id: [second.kept.segment.id]}, now=at)
    vectors = VectorStore(evening.database)
    while waiting := await vectors.unembedded(limit=50):
        await vectors.store("fake", {each: None if text is None else [1.0, 0.5] for each, text in waiting})
    await GuildStore(evening.database, evening.clock).choose(GUILD, lambda _: GuildChoice(), by=int(PERSON))
    servers = SqlServerSettings(evening.database, evening.clock)
    await servers.put(GUILD, ServerSettings(auto_join_with=(int(PERSON), 7)), by=int(PERSON))
    await says(evening, "Nobody has drawn facts from this.")
    await evening.facts.forget(PERSON, GUILD)
    # Afterwards, because this deletes facts and sent texts as well.
    tool_output = f"found: {NAMES[0]} ({PERSON}): {WORDS[1]}"
    await evening.prompts.store_sent_texts(evening.session_id, [tool_output], is_current=lambda _: True)
    await note_fact(evening.database, evening.session_id)


async def note_fact(database: Database, session_id: SessionId) -> None:
    """Store a fact about the person that has neither name nor words of theirs, as a model may word it."""
    values = {"id": f"{session_id}#fact", "session_id": session_id, "turn_seq": 0, "person_id": PERSON, "at": 0.0}
    async with database.writing() as connection:
        await connection.execute(
            insert(person_facts).values(values | {"name": "Q", "text": "Puts parcels into sheds."})
        )


async def export(evening: Evening) -> list[dict[str, object]]:
    """Return the files of all segments, as an export writes them."""
    overview = await MemoryAdmin(evening.database, evening.clock).overview(evening.session_id)
    return [segment_json(tier.kept.segment, overview.record(tier)) for tier in overview.tiers]


async def bring_back(evening: Evening, files: Sequence[object]) -> int:
    """Import these files and return how many were refused."""
    refused = 0
    for written in files:
        try:
            await SegmentImporter(evening.database).import_record(
                read_record(written), paragraph=read_paragraph(written)
            )
        except SegmentImportError:
            refused += 1
    return refused


def write_log(folder: Path) -> None:
    """Write a log with speech on."""
    with configured_logging(LogsSettings(speech=True, level="debug"), data_dir=folder):
        log = structlog.get_logger()
        log.info("turn_recorded", speaker_id=int(PERSON), seq=0, text=WORDS[0])
        log.info("person_joined", name="Will", person_id=PERSON)
        log.info("reply_sent", text=f"They said: {WORDS[1]}", parts=[{"who": NAMES[0]}])
        log.info("turn_recorded", speaker_id=7, text="It will rain at nine.")


async def _checkpoint(evening: Evening) -> bool:
    assert isinstance(evening.database.dialect, SqliteDialect)
    return await evening.database.dialect.checkpoint()


@pytest.mark.asyncio
async def test_no_byte_of_a_forgotten_person_stays(tmp_path: Path) -> None:
    """A person's id, names and words, planted everywhere, are in no byte of the data folder while the database is open,
    also not after older exports are imported. What other people said stays, and an export made afterwards is imported.
    """
    data = tmp_path / "data"
    data.mkdir()
    path = data / "roomtone.db"
    write_log(data)
    async with Evening(path, summariser=RestatingSummariser()) as evening:
        await fill(evening)
        stored = await evening.store.load(evening.session_id)
        assert any(RARE[0] in each.gist.casefold() for each in stored.segments if not each.pruned)
        async with Evening(path, name="later", clock=evening.clock, summariser=RestatingSummariser()) as later:
            await later.say("Bot, who likes parrots?", "Bob")
            await answers(later, f"Quillfeather does. {WORDS[0]}", to=0)
            await talk(later, 62)
        async with Evening(path, name="quiet", clock=evening.clock) as quiet:
            await quiet.say("It is late.", "Bob")
            await note_fact(quiet.database, quiet.session_id)
        old = await export(evening)
        assert {each.split(": ")[1] for each in traces(data)} >= {PERSON, NAMES[0], "Will", *RARE}

        forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log_path(data).parent)
        (person,) = await forgetter.find(PERSON)
        done = await forgetter.forget(person)
        assert done.stored.wiped
        assert done.stored.rules == 1
        assert (await SqlServerSettings(evening.database, evening.clock).all())[GUILD].auto_join_with == (7,)
        assert set(done.stored.sessions) == {evening.session_id, SessionId("later")}
        assert done.log_lines == 3
        assert traces(data) == []

        assert await bring_back(evening, old) == len(old)
        assert await _checkpoint(evening)
        assert traces(data) == []
        renamed = [{**each, "session_id": "elsewhere"} for each in old if "with my aunt Petronella" in str(each)]
        assert await bring_back(evening, renamed) == len(renamed) > 0
        assert await _checkpoint(evening)
        assert traces(data) == []
        assert await bring_back(evening, await export(evening)) == 0

        kept = {int(turn.seq): turn for turn in await evening.store.turns(evening.session_id, Seq(0), Seq(12))}
        assert [seq for seq, turn in kept.items() if turn.tombstone] == [0, 3, 4, 6, 10]
        assert kept[2].parts[0].text == "It will rain. Will it rain at nine?"
        assert kept[8].parts[0].text == "It will rain at nine."
        assert [part.text for part in kept[9].parts] == ["We leave at ten."]
        assert "It will rain at nine." in log_path(data).read_text("utf-8")
        assert await forgetter.find(PERSON) == ()


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


async def count_listed(database: Database) -> int:
    """Return how many word sequences are on the list of what was forgotten."""
    async with database.reading() as connection:
        return (await connection.scalar(select(func.count()).select_from(forgotten_runs))) or 0


@pytest.mark.asyncio
async def test_an_interrupted_attempt_is_finished_by_the_next(tmp_path: Path) -> None:
    """Wherever the database goes away, the second attempt leaves nothing: no quotation of the bot in another session,
    no log line, and no gap in the list that refuses imports. Which sessions had changed is told.
    """
    listed: set[int] = set()
    for writes in range(50):
        data = tmp_path / str(writes)
        data.mkdir()
        write_log(data)
        async with Evening(data / "a.db") as own:
            await says(own, WORDS[0])
            await says(own, WORDS[1], "Will")
            async with Evening(data / "a.db", name="telling", clock=own.clock, channel=702) as telling:
                await telling.say("Bot, who likes parrots?", "Bob")
                await answers(telling, f"Quillfeather does. {WORDS[0]}")
            outage = Outage(writes)
            database = own.database.checked(outage.check)
            forgetter = PersonForgetter(database, own.clock, log_folder=log_path(data).parent)
            changed: list[SessionId] = []
            failed = False
            (person,) = await forgetter.find(PERSON)
            try:
                done = await forgetter.forget(person, on_changed=changed.append)
                outage.is_over = True
                assert await wipe_if_due(own.database, now=own.clock.now(), pause_s=0.0)
            except StoreError:
                failed = outage.is_over = True
                # As soon as anything has changed, imports of all the words are refused.
                assert not changed or await count_listed(own.database) > 0
                again = await forgetter.find_by_id(PERSON) or StoredSpeaker(PERSON, (), 0.0, 0, ())
                await forgetter.forget(again, on_changed=changed.append)
            assert sorted(changed) == [own.session_id, SessionId("telling")]
            assert traces(data) == []
            assert forgetter._unfinished == {}
            listed.add(await count_listed(own.database))
        if not failed and done.stored.wiped:
            break
    assert writes >= 4
    assert not failed
    assert len(listed) == 1
    assert 0 not in listed


@pytest.mark.asyncio
async def test_a_log_that_fails_is_cleaned_by_the_next_attempt(tmp_path: Path) -> None:
    """The words have left the store by then, and are still known."""
    log = log_path(tmp_path)
    rotated = log.with_name(f"{log.name}.1")
    async with Evening(tmp_path / "a.db") as evening:
        await says(evening, WORDS[0])
        rotated.mkdir(parents=True)
        forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log.parent)
        (person,) = await forgetter.find(PERSON)
        with pytest.raises(IsADirectoryError):
            await forgetter.forget(person)
        assert await forgetter.find_by_id(PERSON) is None
        rotated.rmdir()
        rotated.write_text(json.dumps({"event": "turn_recorded", "text": WORDS[0]}) + "\n", "utf-8")
        assert (await forgetter.forget(StoredSpeaker(PERSON, (), 0.0, 0, ()))).log_lines == 1
        assert traces(tmp_path) == []


@pytest.mark.asyncio
async def test_a_wipe_that_fails_leaves_nothing_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words have left the store by then, so another process could not find them in the log any more."""

    async def wipe(_: Database) -> bool:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(Database, "wipe", wipe)
    write_log(tmp_path)
    async with Evening(tmp_path / "a.db") as evening:
        await says(evening, WORDS[0])
        forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log_path(tmp_path).parent)
        (person,) = await forgetter.find(PERSON)
        done = await forgetter.forget(person)
        assert done.log_lines > 0
        assert not done.stored.wiped
        assert PERSON not in log_path(tmp_path).read_text("utf-8")


@pytest.mark.asyncio
async def test_words_of_few_failed_attempts_are_kept(tmp_path: Path) -> None:
    """Only the latest are in memory, each person, session and turn for itself."""
    log = log_path(tmp_path)
    log.mkdir(parents=True)
    async with Evening(tmp_path / "a.db") as evening:
        await says(evening, WORDS[0])
        forgetter = PersonForgetter(evening.database, evening.clock, log_folder=log.parent)
        for number in range(MOST_UNFINISHED + 2):
            with pytest.raises(IsADirectoryError):
                await forgetter.forget(StoredSpeaker(str(number), (), 0.0, 0, ()), session_id=evening.session_id, seq=0)
    names = [person_id for person_id, _, _ in forgetter._unfinished]
    assert names == [str(number) for number in range(2, MOST_UNFINISHED + 2)]


def test_log_lines_lose_the_person_alone(tmp_path: Path) -> None:
    """Only the values that tell of the person are replaced. A line that is not JSON goes if it tells of the person."""
    log = log_path(tmp_path)
    log.parent.mkdir()
    lines = [
        json.dumps({"event": "a", "speaker_id": int(PERSON), "seq": 3}),
        json.dumps({"event": "b", "who": ["Will", "Bob"], "count": 4}),
        json.dumps({"event": "c", "text": "It will rain.", "title": "Will Smith"}),
        f"Traceback: {PERSON}",
        "Traceback: other",
    ]
    log.write_text("\n".join(lines) + "\n", "utf-8")
    assert forget_in_logs(log.parent, forgotten_words(WORDS, NAMES), person_id=PERSON) == 4
    left = log.read_text("utf-8").splitlines()
    assert left[-1] == lines[4]
    assert [json.loads(line) for line in left[:-1]] == [
        {"event": "a", "speaker_id": FORGOTTEN_VALUE, "seq": 3},
        {"event": "b", "who": [FORGOTTEN_VALUE, "Bob"], "count": 4},
        {"event": "c", "text": "It will rain.", "title": FORGOTTEN_VALUE},
    ]
    assert forget_in_logs(log.parent, forgotten_words(WORDS, NAMES), person_id=PERSON) == 0


@pytest.mark.parametrize("speech", [False, True])
def test_a_name_or_a_phrase_deletes_nothing_that_the_program_says(tmp_path: Path, *, speech: bool) -> None:
    """People may call themselves what stands in every line of the operator's log, or say it. Neither events nor levels
    go for it, nor, as long as the log has nothing of what people said, the messages of errors. Their id always goes.
    """
    names = ("dashboard login", "command refused", "model context built", "error", "info", "Traceback", "recall")
    said = ("The database is away now.", "Close other programs that read the database.", "most recent call last")
    with configured_logging(LogsSettings(speech=speech), data_dir=tmp_path, console=io.StringIO()):
        log = structlog.get_logger()
        log.info("dashboard_login", by=7)
        log.error("command_refused", command="recall", remedy=said[1], reason="error")
        log.info("model_context_built", digest="error", note_ids=["info"], recall=["error"])
        log.info("command_used", tool=f"of-{PERSON}", user_id=int(PERSON))
        try:
            raise StoreError(said[0])
        except StoreError as error:
            log.exception("turn_not_stored", problem=error)
    log_file = log_path(tmp_path)
    before = [json.loads(line) for line in log_file.read_text("utf-8").splitlines()]
    assert forget_in_logs(log_file.parent, forgotten_words(said, names), person_id=PERSON) == (2 if speech else 1)
    after = [json.loads(line) for line in log_file.read_text("utf-8").splitlines()]
    assert after[:3] == before[:3]
    assert (after[3]["event"], after[3]["level"], after[3]["user_id"]) == ("command_used", "info", FORGOTTEN_VALUE)
    assert PERSON not in log_file.read_text("utf-8")
    assert (after[4]["event"], after[4]["level"]) == ("turn_not_stored", "error")
    assert (after[4]["problem"] == before[4]["problem"]) is not speech
    assert (after[4]["exception"] == before[4]["exception"]) is not speech


def test_the_whole_of_something_short_leaves_the_log_alone_where_it_is_part_of_more(tmp_path: Path) -> None:
    """A short turn stands in a line of its own, with `logs.speech`. In another one everybody may have said it."""
    log = log_path(tmp_path)
    log.parent.mkdir()
    lines = [json.dumps({"event": "turn_recorded", "text": text}) for text in ("Thank you!", "Thank you for the tea.")]
    log.write_text("\n".join(lines) + "\n", "utf-8")
    assert forget_in_logs(log.parent, forgotten_words(["Thank you."])) == 1
    assert [json.loads(line)["text"] for line in log.read_text("utf-8").splitlines()] == [
        FORGOTTEN_VALUE,
        "Thank you for the tea.",
    ]
