"""An evening of three hours at the level of turns: nothing is lost, nothing grows, and what was said first is known."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from compaction.rendering import MAX_SUMMARY_CHARS
from compaction.timeline import CAPACITY
from compaction.window import BATCH_SIZE, RECENT_WINDOW
from rehearsal.written import Quiet, Talk, read_evening
from tests.bot.test_room import settle
from tests.scenarios.long_evening import EVENING, WHO, LongHouse, Witness
from voice.speaking.playback import QUEUE_PIECES, REMEMBERED_PIECES

if TYPE_CHECKING:
    from pathlib import Path

    from rehearsal.written import Happening

OURS = ("bot.", "compaction.", "voice.")
EVENING_S = 3 * 3600.0
# What a prompt of this house may cost.
MAX_INPUT_TOKENS = 10_000
# What holds sound or words of the moment: a few at any time, however long the evening.
PASSING = (
    "bot.hearing.SpokenText",
    "voice.asr.port.Recognition",
    "voice.listening.utterance.Utterance",
    "voice.speaking.port.Speech",
    "voice.transport.heard.SpeechFrames",
)
MOST_PASSING = 12


@dataclass(frozen=True, slots=True)
class Evening:
    """What an evening left behind. `living`: objects of our own at each full hour and at the end, by class."""

    happenings: tuple[Happening, ...]
    witness: Witness
    lasted_s: float
    living: tuple[Counter[str], ...]
    logs: tuple[str, ...]
    tasks_left: tuple[str, ...]


def own_objects() -> Counter[str]:
    """Count the living objects of our own classes."""
    gc.collect()
    names = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Counter(name for name in names if name.startswith(OURS))


def talks(evening: Evening) -> list[Talk]:
    """Return what was said, in order."""
    return [each for each in evening.happenings if isinstance(each, Talk)]


async def play(folder: Path) -> Evening:
    """Let the whole evening happen."""
    before = asyncio.all_tasks()
    # Tables of other tests hold objects of ours too.
    elsewhere = own_objects()
    happenings, living = read_evening(EVENING), list[Counter[str]]()
    with capture_logs() as logs:
        async with LongHouse(folder) as house:
            room = house.room_here = house.room()
            life = asyncio.create_task(room.run(), name="long-evening")
            await settle(room.opened.is_set)
            begun = house.clock.monotonic()
            for happening in happenings:
                await house.perform(happening)
                # What a reply or a fold leaves to be done is done before the next thing happens.
                assert not life.done(), life
                if house.clock.monotonic() - begun >= 3600 * (1 + len(living)):
                    living.append(own_objects() - elsewhere)
            lasted_s = house.clock.monotonic() - begun
            living.append(own_objects() - elsewhere)
            room.close("left")
            await settle(life.done)
            assert life.result() == "left"
            witness = house.witness
    left = tuple(sorted(task.get_name() for task in asyncio.all_tasks() - before))
    loud = tuple(str(line["event"]) for line in logs if line["log_level"] in {"warning", "error", "critical"})
    return Evening(happenings, witness, lasted_s, tuple(living), loud, left)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    """Play it once for all."""
    return await play(tmp_path_factory.mktemp("evening"))


@pytest.mark.asyncio(loop_scope="module")
async def test_it_is_a_long_evening(evening: Evening) -> None:
    """Three hours, hundreds of turns, dozens of folds, quiet stretches, people who go and come back."""
    assert evening.lasted_s >= EVENING_S
    kinds = Counter(kind for _, kind, _ in evening.witness.turns)
    assert kinds["speech"] > 400
    assert kinds["membership"] == 14
    assert len(evening.witness.folds) > 35
    assert sum(isinstance(each, Quiet) and each.quiet_s > 300 for each in evening.happenings) == 12
    assert sum(interrupted for _, _, interrupted in evening.witness.replies) == 4


@pytest.mark.asyncio(loop_scope="module")
async def test_every_word_stands_once_under_its_speaker(evening: Evening) -> None:
    """Also what two people said at the same time, and what was said over the bot; turn numbers have no gap."""
    lines = [line for talk in talks(evening) for line in (talk, talk.over, talk.broken_off) if line is not None]
    said = Counter((WHO[line.who].name, line.say) for line in lines)
    assert Counter(part for _, kind, parts in evening.witness.turns if kind == "speech" for part in parts) == said
    assert [seq for seq, _, _ in evening.witness.turns] == list(range(len(evening.witness.turns)))
    assert evening.witness.dropped == []
    assert evening.witness.closed == "left"


@pytest.mark.asyncio(loop_scope="module")
async def test_those_who_ask_are_answered_and_nobody_else(evening: Evening) -> None:
    """One answer to each question, with what was asked for; not one to the talk between people."""
    texts = {seq: [text for _, text in parts] for seq, _, parts in evening.witness.turns}
    asked = [talk for talk in talks(evening) if talk.answer]
    assert len(evening.witness.replies) == len(asked)
    for talk, (seq, text, interrupted) in zip(asked, evening.witness.replies, strict=True):
        assert talk.say in texts[seq]
        assert interrupted is (talk.broken_off is not None)
        assert interrupted or all(words in text for words in talk.answer), text
    recorded = [parts[0][1] for _, kind, parts in evening.witness.turns if kind == "assistant"]
    assert [text.endswith(" (interrupted)") for text in recorded] == [cut for _, _, cut in evening.witness.replies]


@pytest.mark.asyncio(loop_scope="module")
async def test_what_was_said_first_is_still_known(evening: Evening) -> None:
    """Out of the summary or by memory search, three hours and forty folds later."""
    first = " ".join(talk.say for talk in talks(evening)[:20])
    last = talks(evening)[-4:]
    assert all(talk.answer[0] in first for talk in last)
    replies = [text for _, text, _ in evening.witness.replies[-4:]]
    assert all(talk.answer[0] in text for talk, text in zip(last, replies, strict=True)), replies


@pytest.mark.asyncio(loop_scope="module")
async def test_every_prompt_covers_everything_and_none_is_too_large(evening: Evening) -> None:
    """Each turn before a question is in the prompt, folded or as it was; folds follow each other without a gap."""
    assert all(missing == () for missing in evening.witness.missing)
    assert max(evening.witness.tokens) <= MAX_INPUT_TOKENS
    folds = evening.witness.folds
    assert folds[0][0] == 0
    assert all(earlier[1] == later[0] for earlier, later in pairwise(folds))
    assert all(new - old == BATCH_SIZE for old, new, _ in folds)
    assert all(0 < chars <= MAX_SUMMARY_CHARS for _, _, chars in folds)
    assert len(evening.witness.turns) - folds[-1][1] <= RECENT_WINDOW + 2 * BATCH_SIZE


@pytest.mark.asyncio(loop_scope="module")
async def test_nothing_grows_but_what_was_folded(evening: Evening) -> None:
    """Turns alive are those of the timeline, sound goes as it came, and each fold adds as much as the one before."""
    for living in evening.living:
        # A fold in flight, and one that has just ended, hold their batches.
        assert living["compaction.model.Turn"] <= CAPACITY + 2 * BATCH_SIZE
        assert max(living[name] for name in PASSING) <= MOST_PASSING, {name: living[name] for name in PASSING}
        assert living["voice.speaking.playback._Piece"] <= REMEMBERED_PIECES + QUEUE_PIECES
    first, *_, last = evening.living
    segments = last["compaction.model.Segment"] - first["compaction.model.Segment"]
    assert segments > 10
    # A cache of looked-at words is bounded by itself.
    grown = sum((last - first).values()) - max(0, last["bot.brain.wakeword._Word"] - first["bot.brain.wakeword._Word"])
    assert grown < 150 * segments, (last - first).most_common(12)


@pytest.mark.asyncio(loop_scope="module")
async def test_it_ends_in_order(evening: Evening) -> None:
    """No task is left, nobody had to be told of a trouble."""
    assert evening.tasks_left == ()
    assert evening.witness.problems == []
    assert evening.logs == ()
