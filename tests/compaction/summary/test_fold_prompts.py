"""The prompt has every element of the specification, whole turns, and notes within their limit."""

from __future__ import annotations

import json

from compaction.model import Fact, FactKind, Seq
from compaction.summary.fold_prompts import LedgerPrompts, RecursivePrompts, format_notes
from compaction.summary.port import FoldRequest, KnownFact
from compaction.summary.prompt_texts import PromptTexts
from tests.compaction.turn_store_contract import T0, note, turn

TURNS = (turn(20, "We rent the cabin. " * 200), turn(21, "The gate code is 7023.", speaker="Bob"))
KNOWN = tuple(
    KnownFact(f"s0#{index}", fact)
    for index, fact in enumerate(
        (
            Fact((Seq(1),), FactKind.DECISION, "Ada", T0, "The gate code is 4411."),
            Fact((Seq(2),), FactKind.OTHER, "Ada", T0, "The weather was bad."),
        )
    )
)


def test_prompt_has_every_element() -> None:
    """The prompt has the priorities in order, what to leave out, what is known, the notes, the turns with speakers and
    times, and the limits.
    """
    prompt = LedgerPrompts(PromptTexts()).write(
        FoldRequest(Seq(20), TURNS, (note("Tokyo"),), "They met.", known=KNOWN), structured=True, max_output_tokens=700
    )
    system, user = prompt.request.system, prompt.request.prompt
    order = ["who said what", "doing together", "still open", "decisions", "shared screen, together"]
    places = [system.index(each) for each in order]
    assert places == sorted(places)
    for element in ("greetings", "Never invent", "newest", "300 characters", "plain prose", "Do not answer"):
        assert element in system
    assert "They met." in user
    assert "Bob's screen: a map with the mark Tokyo" in user
    assert f"[20] 08:54 Ada: {'We rent the cabin. ' * 199}We rent the cabin." in user, "turns are not clipped"
    assert "[21] 08:54 Bob: The gate code is 7023." in user
    assert "$" not in system + user


def test_only_facts_that_could_be_corrected_are_offered() -> None:
    """Only facts that the batch could correct are listed, numbered from one in their order."""
    prompt = LedgerPrompts(PromptTexts()).write(
        FoldRequest(Seq(20), TURNS, (), None, known=KNOWN), structured=True, max_output_tokens=700
    )
    assert [each.ref for each in prompt.offered] == ["s0#0"]
    assert "(1) Ada: The gate code is 4411." in prompt.request.prompt


def test_schema_allows_only_what_can_be_true() -> None:
    """The schema allows only turns of the batch to be cited. A request for plain lines has no schema."""
    prompts = LedgerPrompts(PromptTexts())
    fold = FoldRequest(Seq(20), TURNS, (), None)
    schema = prompts.write(fold, structured=True, max_output_tokens=700).request.schema
    assert '"enum": [20, 21]' in json.dumps(schema)
    lines = prompts.write(fold, structured=False, max_output_tokens=700).request
    assert lines.schema is None
    assert "turn number | kind |" in lines.system
    assert lines.prompt.startswith("New turns"), "a section with nothing in it is left out"


def test_first_batch_without_notes_has_no_empty_headings() -> None:
    """For a first batch without notes, neither strategy's prompt mentions a screen, a previous summary or
    known facts.
    """
    fold = FoldRequest(Seq(20), TURNS, (), None)
    asked = LedgerPrompts(PromptTexts()).write(fold, structured=True, max_output_tokens=700).request.prompt
    retold = RecursivePrompts(PromptTexts()).write(fold, max_output_tokens=700).prompt
    for prompt in (asked, retold):
        assert "screen" not in prompt
        assert "revious" not in prompt
        assert "known" not in prompt
        assert prompt.startswith("New turns")
        assert "\n\n\n" not in prompt


def test_notes_keep_their_limit_and_their_newest() -> None:
    """Notes have at most four hundred characters together, with the owner of the screen and the time. Repetitions are
    left out, the newest notes are kept, and the oldest comes first.
    """
    notes = [note(f"place{number}", at=T0 + 60.0 * number) for number in range(48)]
    text = format_notes(notes)
    assert len(text) <= 400
    assert "place47" in text
    assert format_notes([note("a"), note("a")]).count("screen") == 1
    assert format_notes([]) == ""
