"""The chapters of an evening: what belongs together, how much of it is told, and what is lost with its sources."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.text import plain
from compaction.memory.chapters import (
    MOST_TURNS,
    PAUSE_S,
    Chapter,
    chapters_of,
    sentences_about,
    tell_chapters,
    without_headings,
)
from compaction.model import EXTRACTIVE, FactKind, Segment, SegmentId
from compaction.summary.folded import make_segment
from compaction.summary.port import NOTHING_KEPT, Fold, FoldRequest
from compaction.tokens import estimate_text_tokens
from tests.compaction.segments import batch, fact


def headed(*headings: str) -> list[Segment]:
    """Return a batch with each heading, and a fact of its own."""
    return [
        replace(
            batch(at, fact(at * 10, f"Fact {at}.", FactKind.DOING), gist=f"Gist {at}."),
            heading=heading,
            id=SegmentId(f"s{at}"),
        )
        for at, heading in enumerate(headings)
    ]


@pytest.mark.parametrize(
    ("headings", "chapters"),
    [
        ("AAA", [("A", 0, 30)]),
        ("AAaBBA", [("A; a", 0, 30), ("B", 30, 50), ("A", 50, 60)]),
        # A model that calls every batch another chapter.
        ("ABCDE", [("A; B", 0, 20), ("C; D", 20, 40), ("E", 40, 50)]),
        # A subject that never ends.
        ("A" * 25, [("A", 0, 120), ("A", 120, 240), ("A", 240, 250)]),
        ("", []),
    ],
)
def test_what_has_one_heading_is_one_chapter(headings: str, chapters: list[tuple[str, int, int]]) -> None:
    """As far as it has a chapter's length."""
    assert [(each.heading, each.start, each.end) for each in chapters_of(headed(*headings))] == chapters


def test_a_quote_is_the_heading_of_its_own_chapter_alone() -> None:
    """A subject that never ends, without a model: each chapter is called after something that was said in it."""
    quoted = [replace(each, prompt_version=EXTRACTIVE) for each in headed(*"A" * 25)]
    assert [each.heading for each in chapters_of(quoted)] == ["A", "Fact 12", "Fact 24"]


def test_a_long_pause_ends_a_chapter_and_so_does_a_gap() -> None:
    """People have done something else; or what lies between may not be told."""
    first, second, third = headed("A", "A", "A")
    late = replace(second, started_at=first.ended_at + PAUSE_S + 1, ended_at=first.ended_at + PAUSE_S + 2)
    assert len(chapters_of([first, second, third])) == 1
    assert len(chapters_of([first, late])) == 2
    assert len(chapters_of([first, third])) == 2
    assert chapters_of([replace(first, closing=True)]) == ()


def test_a_chapter_tells_what_holds_and_nothing_told_in_confidence() -> None:
    """A fact that was closed is over, and who told something in confidence is not passed on."""
    first, second = headed("A", "A")
    (chapter,) = chapters_of([first, replace(second, facts=(fact(11, "We rent the hut.", closes=("s0#0",)),))])
    assert chapter.whole == "A: We rent the hut."
    told = fact(12, "Bob resigns.", FactKind.CONFIDED)
    fold = Fold("Bob told us.", (*second.facts, told), "Bob told us.", "fold.v1", heading="Bob resigns")
    request = FoldRequest(second.start, (), heading="A")
    secret = make_segment(request, fold, session_id=second.session_id, revision=0, at=0.0)
    (chapter,) = chapters_of([first, secret])
    assert chapter.whole == "A: Fact 0."
    assert chapters_of([secret]) == ()


def test_without_a_heading_there_is_one_of_what_is_told() -> None:
    """It does not say the same twice."""
    (made,) = headed("")
    (chapter,) = chapters_of([made])
    assert (chapter.heading, chapter.whole) == ("Fact 0", "Fact 0.")
    (chapter,) = chapters_of([replace(made, facts=())])
    assert (chapter.heading, chapter.whole) == ("Gist 0", "Gist 0.")
    assert chapters_of([replace(made, facts=(), gist=NOTHING_KEPT)]) == ()


def test_the_last_chapters_have_more_sentences_and_the_earliest_go_first() -> None:
    """Each has its heading, as long as there is room for all. What stands elsewhere is not told again."""
    chapters = chapters_of([replace(each, heading="UVWXYZ"[at // 3]) for at, each in enumerate(headed(*"." * 18))])

    def told(max_tokens: int, beside: str = "") -> list[str]:
        return [text for _, text in tell_chapters(chapters, max_tokens=max_tokens, beside=beside)]

    assert told(1_000)[::5] == ["U: Fact 0. Fact 1. Fact 2.", "Z: Fact 15. Fact 16. Fact 17."]
    assert told(1_000, "Ada: Fact 16.")[5] == "Z: Fact 15. Fact 17."
    assert told(6 * 3 + 8) == ["U", "V", "W", "X", "Y", "Z: Fact 15."]
    # In other words.
    assert told(6 * 3 + 8, "15 is a fact.")[5] == "Z: Fact 16."
    assert told(3 * 3) == ["X", "Y", "Z"]
    assert told(0) == []


@given(st.lists(st.tuples(st.text(max_size=90), st.text(max_size=300)), max_size=60), st.integers(0, 1_300))
def test_whatever_was_said_the_room_is_kept(said: list[tuple[str, str]], max_tokens: int) -> None:
    """In order, without an empty line."""
    segments = [
        replace(batch(at, fact(at * 10, plain(text) or "x"), gist=plain(text)), heading=plain(heading))
        for at, (heading, text) in enumerate(said)
    ]
    chapters = chapters_of(segments)
    told = tell_chapters(chapters, max_tokens=max_tokens, lead=lambda each: f"from 1999-12-31 23:59, {each.start} ")
    assert estimate_text_tokens("\n".join(text for _, text in told)) <= max_tokens
    assert all(text.strip() and each.heading for each, text in told)
    assert all(each.end - each.start <= MOST_TURNS for each in chapters)
    assert [each.start for each, _ in told] == sorted({each.start for each, _ in told})


NOTED = (
    "Fjord fishes.",
    "Caduceus asked the herb lady for training.",
    "It would cost 200 gold.",
    "He knows the herbs already, so he bought potions.",
    "Jester paints a door.",
    "Beau trains with Tubo.",
)


def noted() -> tuple[Chapter, ...]:
    """Return a chapter for each of these facts."""
    return chapters_of(
        [replace(batch(at, fact(at * 10, text, FactKind.DOING)), heading="ABCDEF"[at]) for at, text in enumerate(NOTED)]
    )


@pytest.mark.parametrize(
    ("question", "max_tokens", "beside", "told"),
    [
        # What stands beside a sentence with its words may tell of it too.
        ("Did Caduceus take the training with the herb lady?", 100, "", (0, 1, 2, 3, 5)),
        ("Did Caduceus take the training with the herb lady?", 16, "", (1,)),
        ("Did Caduceus take the training with the herb lady?", 100, NOTED[1], (0, 2, 3, 5)),
        ("What did Jester paint?", 100, "", (3, 4, 5)),
        ("Who sang in the opera house of Vienna on Sunday?", 100, "", ()),
        ("", 100, "", ()),
    ],
)
def test_what_is_asked_is_told_of_all_chapters(
    question: str, max_tokens: int, beside: str, told: tuple[int, ...]
) -> None:
    """In the order of talk, the best first while there is room."""
    found = sentences_about(noted(), question, max_tokens=max_tokens, beside=beside)
    assert [sentence for _, sentence in found] == [NOTED[at] for at in told]


def test_a_stretch_is_told_whole() -> None:
    """As far as there is room, what is asked first."""
    told = partial(sentences_about, noted(), "What did Jester paint?", whole=True)
    assert [sentence for _, sentence in told(max_tokens=100)] == list(NOTED)
    assert [sentence for _, sentence in told(max_tokens=8)] == [NOTED[4]]


@pytest.mark.parametrize(
    ("headings", "lost", "left"),
    [
        ("AAB", "100", ["Fact 0", "Fact 0", "B"]),
        ("ABBA", "0100", ["A", "Fact 1", "Fact 1", "A"]),
        ("AAB", "000", ["A", "A", "B"]),
    ],
)
def test_a_heading_goes_with_what_it_may_tell(headings: str, lost: str, left: list[str]) -> None:
    """In all batches that share it, which stay one chapter."""
    segments = headed(*headings)
    made = without_headings(segments, segments, [each == "1" for each in lost])
    assert [each.heading for each in made] == left
