"""Folds in six scripts, as answers that were written by hand and by quotes, and search in what was folded."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from bot.memory.recall import Recall
from bot.memory.replay import SESSION, Replay, replay
from bot.memory.transcript import SaidLine
from bot.store.database import open_database
from bot.store.search.search import SqlRecallIndex
from bot.store.search.vector_store import VectorStore
from bot.store.turns import SqlTurnStore
from compaction.errors import SummaryRefusedError
from compaction.language.text import ends_a_sentence, sentences, words
from compaction.memory.passage import PassageKind, Scope
from compaction.model import Mode, Seq, Turn, TurnKind, TurnPart
from compaction.ports import CompletionAnswer, CompletionRequest, TurnStore
from compaction.summary.answer import parse_answer
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.folded import summary_texts
from compaction.summary.llm import LlmSummariser
from compaction.summary.port import NOTHING_KEPT, FoldRequest, Summariser
from compaction.summary.prompt import write_prompt
from compaction.untrusted_text import without_marks
from tests.fakes.clock import FakeClock
from tests.fakes.turn_store import InMemoryTurnStore

TALKS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("scripts.toml").read_text("utf-8"))
# Tokens a character of the hand-written paragraphs with cl100k_base, which takes more than o200k_base and Qwen's.
MOST_TOKENS_A_CHARACTER = {
    "japanese": 1.28,
    "chinese": 1.27,
    "arabic": 0.70,
    "russian": 0.53,
    "hindi": 1.02,
    "german": 0.31,
}


def lines_of(script: str, count: int) -> list[SaidLine]:
    """Return so many lines of a talk; each time that it begins again its figures are others."""
    said = [line.split(": ", 1) for line in TALKS[script]["lines"]]
    return [
        SaidLine(said[at % 20][0], said[at % 20][1].replace("{n}", str(100 + at // 20)), 1e9 + 5.0 * at)
        for at in range(count)
    ]


def batch(script: str) -> FoldRequest:
    turns = [
        Turn(Seq(at), TurnKind.SPEECH, line.at, line.at, (TurnPart(line.speaker, line.speaker, line.text),))
        for at, line in enumerate(lines_of(script, 10))
    ]
    return FoldRequest(Seq(0), tuple(turns))


class Writer:
    """Implements `Completion` with the answers to a talk's folds, or with paragraphs that do not end. Each ends after
    so many characters, if any, or where its tokens do.
    """

    model = "writer"

    def __init__(self, script: str, *, most_chars: int | None = None, repeats: int = 1) -> None:
        self.written = [each | {"paragraph": each["paragraph"] * repeats} for each in TALKS[script]["answers"]]
        self._most = most_chars
        self._rate = MOST_TOKENS_A_CHARACTER[script]
        self.calls: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the next answer."""
        answer = self.written[len(self.calls) % 2]
        self.calls.append(request)
        whole = answer["paragraph"] if request.schema is None else json.dumps(answer, ensure_ascii=False)
        text = whole[: int(request.max_output_tokens / self._rate) if self._most is None else self._most]
        return CompletionAnswer(text, "stop" if text == whole else "length", None, None)


async def play(script: str, count: int, summariser: Summariser, store: TurnStore | None = None) -> Replay:
    return await play_lines(lines_of(script, count), summariser, store)


async def play_lines(lines: Sequence[SaidLine], summariser: Summariser, store: TurnStore | None = None) -> Replay:
    return await replay(
        lines,
        store=store or InMemoryTurnStore(),
        summariser=summariser,
        mode=Mode.SUMMARY,
        system=(),
        max_input_tokens=1_000_000,
        zone=UTC,
        on_event=lambda _: None,
        on_line=lambda: None,
    )


@pytest.mark.parametrize("script", TALKS)
async def test_a_written_fold_is_taken_as_it_stands(script: str) -> None:
    """Summary, facts and their speakers. Where words have cases or nouns have capitals, one or two count as made up."""
    played = await play(script, 71, LlmSummariser(Writer(script)))
    written = TALKS[script]["answers"]
    assert (played.cursor, played.failed) == (20, ())
    assert played.summary == written[1]["paragraph"]
    assert all(each.unsourced <= 2 for each in played.landed)
    assert played.covered.missing == ()
    fold = await LlmSummariser(Writer(script)).fold(batch(script))
    assert [fact.text for fact in fold.facts] == [fact["text"] for fact in written[0]["facts"]]
    said = lines_of(script, 10)
    for taken, fact in zip(fold.facts, written[0]["facts"], strict=True):
        assert taken.speaker in {said[seq].speaker for seq in fact["turns"]}


@pytest.mark.covers("1.17")
@pytest.mark.parametrize("script", TALKS)
def test_the_largest_answer_has_room_in_its_script(script: str) -> None:
    """Gist, paragraph and sixteen facts, as the vocabulary counts that takes most tokens for this script."""
    fact = max(
        (each for answer in TALKS[script]["answers"] for each in answer["facts"]), key=lambda each: len(each["text"])
    )
    chars = 300 + 1_200 + 16 * len(fact["text"] + fact["owner"] + fact["until"])
    needed = MOST_TOKENS_A_CHARACTER[script] * chars + 16 * 53
    allowed = write_prompt(batch(script)).request.max_output_tokens
    assert needed < allowed < 6_500


@pytest.mark.covers("1.17")
@pytest.mark.parametrize("script", TALKS)
async def test_the_paragraph_has_a_cap_of_its_own(script: str) -> None:
    """Beside the whole answer's. What is whole within it goes to the pass that shortens it, whose answer has as many
    tokens as 1,100 characters of the script need. If that is cut off too, its whole sentences are used.
    """
    model = Writer(script, repeats=20)
    fold = await LlmSummariser(model).fold(batch(script))
    sent = without_marks(model.calls[1].prompt)
    assert 1_200 < len(sent) <= 2_400
    assert model.written[0]["paragraph"].startswith(sent)
    assert ends_a_sentence(sent)
    needed = MOST_TOKENS_A_CHARACTER[script] * 1_100
    assert needed < model.calls[1].max_output_tokens < 2.5 * needed
    assert ends_a_sentence(fold.paragraph)
    assert 0 < len(fold.paragraph) <= 1_200


@pytest.mark.covers("1.17")
@pytest.mark.parametrize("script", TALKS)
async def test_what_is_cut_off_is_used_as_far_as_it_is_whole(script: str) -> None:
    """Sentences of the paragraph, else the facts behind the summary so far; nothing of a fact that is not whole."""
    written = TALKS[script]["answers"][0]
    texts = [fact["text"] for fact in written["facts"]]
    paragraph = sentences(written["paragraph"])
    taken: set[tuple[int, int]] = set()
    for most in range(0, len(json.dumps(written, ensure_ascii=False)), 7):
        try:
            fold = await LlmSummariser(Writer(script, most_chars=most)).fold(batch(script))
        except SummaryRefusedError:
            assert not taken
            continue
        facts = [fact.text for fact in fold.facts]
        assert facts == texts[: len(facts)]
        told = sentences(fold.paragraph)
        assert told == (paragraph[: len(told)] if told[0] == paragraph[0] else sentences(" ".join(facts)))
        taken.add((len(facts), len(told)))
    assert len(taken) > 4


@pytest.mark.parametrize("script", TALKS)
def test_a_copy_of_a_turn_is_no_summary(script: str) -> None:
    """Thirty words in a row, or sixty pairs of characters."""
    turn = batch(script).turns[0]
    text = " ".join(line.text for line in lines_of(script, 20))
    copied = replace(turn, parts=(replace(turn.parts[0], text=text),))
    answer = CompletionAnswer(json.dumps({"gist": "", "paragraph": text[:400]}), "stop", None, None)
    with pytest.raises(SummaryRefusedError, match="copied"):
        parse_answer(answer, (copied,))


@pytest.mark.parametrize("most_chars", [40, 400, None])
@pytest.mark.parametrize("script", TALKS)
async def test_the_cursor_never_stalls(script: str, most_chars: int | None) -> None:
    """Also with a model that is cut off each time: at the latest the batch is folded by quotes."""
    played = await play(script, 160, LlmSummariser(Writer(script, most_chars=most_chars)))
    assert played.cursor == 100 if most_chars is None else played.cursor >= 30
    assert played.covered.missing == ()
    assert 0 < len(played.summary) <= 1_200
    assert ends_a_sentence(played.summary)


@pytest.mark.parametrize(
    "said",
    [
        "😀🎉👩‍👩‍👧",
        "あ" * 2_000,
        "x" * 2_000,
        "明日は雨だから電車で行きます" * 150,
        "Er sagte 「明日行きます」, und סבתא \u202eשרה\u202c bringt 3 कमल.",
        "\u200f\u200f \u200f \u202e",
        "",
    ],
)
@pytest.mark.parametrize("by_model", [False, True])
async def test_whatever_is_said_the_cursor_moves_on(said: str, by_model: bool) -> None:
    """Emoji alone, no spaces for 2,000 characters, one script inside another, signs that show nothing. Each quote
    stands in what was said, also where a model answers in another script.
    """
    lines = [SaidLine("Ada", said or "…", 1e9 + 5.0 * at) for at in range(71)]
    played = await play_lines(lines, LlmSummariser(Writer("hindi")) if by_model else ExtractiveSummariser())
    assert (played.cursor, played.failed) == (20, ())
    assert 0 < len(played.summary) <= 1_200
    assert ends_a_sentence(played.summary)
    if by_model:
        assert played.summary == TALKS["hindi"]["answers"][1]["paragraph"]
    elif played.summary != NOTHING_KEPT:
        assert all(words(text.rstrip("."))[:20] == words(said)[:20] for _, text in summary_texts(played.summary))


@pytest.mark.slow
@pytest.mark.parametrize("script", TALKS)
async def test_500_turns_by_quotes_are_told_and_found(tmp_path: Path, script: str) -> None:
    """The summary has quotes of the whole evening, each as it was said, and questions find their turns."""
    lines = lines_of(script, 500)
    async with open_database(tmp_path / "talk.db", synchronous="normal") as database:
        store = SqlTurnStore(database, FakeClock())
        played = await play(script, 500, ExtractiveSummariser(), store)
        assert (played.cursor, played.covered.missing) == (440, ())
        assert played.summary != NOTHING_KEPT
        assert 600 < len(played.summary) <= 1_200
        quotes = summary_texts(played.summary)
        told = [
            at
            for who, text in quotes
            for at, line in enumerate(lines)
            if who == line.speaker and text.rstrip("。.!?？।؟") in line.text
        ]
        assert {who for who, _ in quotes} <= {line.speaker for line in lines}
        assert min(told) < 100
        assert max(told) > 340
        recall = Recall(SqlRecallIndex(database, VectorStore(database)), store)
        scope = Scope(session_id=SESSION, kinds=frozenset({PassageKind.TURN}))
        for question, line in TALKS[script]["asks"]:
            hits = await recall.search(question, scope, limit=3)
            assert any(hit.seq is not None and hit.seq % 20 == line for hit in hits), (question, [h.text for h in hits])
            assert hits[0].relevance > 0.25
        assert all(hit.relevance < 0.25 for hit in await recall.search(TALKS[script]["stray"], scope, limit=3))
