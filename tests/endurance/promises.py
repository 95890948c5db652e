"""What a killed process had acknowledged, and the check of its database against that.

Turns have words that follow from their session and number, so that every stored turn can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.store.turns import SqlTurnStore
from compaction.model import Note, NoteId, Seq, SessionId, Turn, TurnPart
from tests.bot.conftest import Place
from tests.endurance.databases import check_whole

T0 = 1_760_000_000.0
SPEAKERS = ("Ada", "Bob", "Cy")
# Who asks to be forgotten, and a word that nobody else says.
FORGETS = "Ada"
SECRET = "walnutcake"


@dataclass(slots=True)
class SessionPromises:
    """What was acknowledged in one session. `turns`: how many. `forgetting`: turns of `FORGETS` before this one were
    asked to be forgotten; `forgotten`: and it was done.
    """

    turns: int = 0
    notes: set[str] = field(default_factory=set)
    cursor: int = 0
    forgetting: int = 0
    forgotten: int = 0
    ended: bool = False


@dataclass(slots=True)
class Promises:
    """What was acknowledged in all sessions of one database. Sessions are named by their number."""

    sessions: list[SessionPromises] = field(default_factory=lambda: [SessionPromises()])

    @property
    def session_id(self) -> SessionId:
        """The session that goes on at the next start."""
        return session_name(len(self.sessions) - 1)

    def hear(self, line: str) -> None:
        """Take one acknowledgement that the process printed."""
        word, *values = line.split()
        session = self.sessions[-1]
        match word:
            case "turns":
                session.turns = int(values[0])
            case "note":
                session.notes.add(values[0])
            case "landed":
                session.cursor = int(values[0])
            case "forgetting":
                for each in self.sessions:
                    each.forgetting = each.turns
            case "forgotten":
                for each in self.sessions:
                    each.forgotten = each.forgetting
            case "ended":
                session.ended = True
                self.sessions.append(SessionPromises())
            case _:
                raise ValueError(f"An unknown acknowledgement: {word}")


def session_name(number: int) -> SessionId:
    return SessionId(f"evening-{number}")


def speaker_of(seq: int) -> str:
    return SPEAKERS[seq % len(SPEAKERS)]


def parts_of(session_id: str, seq: int) -> tuple[TurnPart, ...]:
    """Return what is said as turn `seq`."""
    speaker = speaker_of(seq)
    word = SECRET if speaker == FORGETS else "bicycle"
    text = f"I put {word} number {seq} of {session_id} on the list for Saturday."
    return (TurnPart(f"id-{speaker}", speaker, text),)


def note_of(name: str) -> Note:
    return Note(NoteId(name), T0, "Bob", f"the map {name}")


async def check(place: Place, store: SqlTurnStore, promises: Promises) -> int:
    """Compare the database with what was acknowledged, and return how many turns the open session has.

    Raises AssertionError when anything acknowledged is missing, anything is there twice, or the database is damaged.
    """
    check_whole(place)
    total = 0
    for number, session in enumerate(promises.sessions):
        total = await _check_session(store, session_name(number), session)
    return total


async def _check_session(store: SqlTurnStore, session_id: SessionId, promised: SessionPromises) -> int:
    memory = await store.load(session_id)
    total, state = memory.total_turns, memory.state
    # One turn may be stored without its acknowledgement having come out.
    assert promised.turns <= total <= promised.turns + 1, f"{total} turns of {promised.turns} acknowledged"
    stored = await store.turns(session_id, Seq(0), Seq(total + 1))
    assert [turn.seq for turn in stored] == list(range(total)), "a turn is missing or there twice"
    for turn in stored:
        _check_words(session_id, turn, promised)
    assert memory.ended or not promised.ended, "an acknowledged end is gone"

    assert state.cursor >= promised.cursor, "an acknowledged fold is gone"
    reached = 0
    for segment in memory.segments:
        assert segment.start == reached, "segments have a gap or overlap"
        reached = segment.end
    assert reached == (total if memory.ended else state.cursor)
    assert [turn.seq for turn in memory.window] == list(range(state.cursor, total))

    folded = [name for segment in memory.segments for name in segment.note_ids]
    held = [note.id for note in (*memory.live_notes, *state.pending_notes)]
    assert len(folded) == len(set(folded)), "a note was folded twice"
    # The closing segment names the notes that nobody folds any more; their rows stay as they were.
    assert memory.ended or not set(folded) & set(held), "a folded note is still to be folded"
    assert promised.notes <= {*folded, *held}, "an acknowledged note is gone"
    return total


def _check_words(session_id: SessionId, turn: Turn, promised: SessionPromises) -> None:
    said = tuple(part for part in turn.parts if part.text)
    if speaker_of(turn.seq) == FORGETS and turn.seq < promised.forgetting:
        if not said:
            return
        assert turn.seq >= promised.forgotten, f"turn {turn.seq} was forgotten and is there"
    assert said == parts_of(session_id, turn.seq), f"turn {turn.seq} has other words"
