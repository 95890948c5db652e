"""The bot's own statements are kept as facts; its quotations of people are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.language.claims import claim_of
from compaction.model import Fact, FactKind, Seq, Turn
from compaction.summary.assistant_facts import PeopleClaims, supersede_own_facts
from compaction.summary.extractive import extract_facts
from compaction.summary.port import KnownFact
from tests.compaction.turn_store_contract import T0, bot_turn, turn

BOT = "Roomtone"
TOLD = (
    ("Ben", "Then I will bring the lemonade and two loaves of fresh bread."),
    ("Ada", "The town I want to visit is Lisbon."),
    ("Chloe", "The concert starts at seven on Friday."),
    ("Ada", "On Ada's screen: Ticket price 45 euros."),
)


def fact(speaker: str, text: str) -> Fact:
    return Fact((Seq(0),), FactKind.OTHER, speaker, T0, text)


def known(*facts: Fact) -> tuple[KnownFact, ...]:
    return tuple(KnownFact(f"s#{number}", each) for number, each in enumerate(facts))


def kept(*turns: Turn, before: tuple[KnownFact, ...] = ()) -> list[str]:
    return [each.attributed_text for each in extract_facts(turns, start=Seq(0), known=before)]


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        # Quotations and reports of what people said, and of what was on a screen.
        ("Just now, Ben said: Then I will bring the lemonade and two loaves of fresh bread.", False),
        ("You said you are allergic to walnuts, so I suggest the lemon cake.", False),
        ("Ben has told us that the hall costs 90 pounds.", False),
        ("On a screen 3 minutes ago: the invoice of 90 euros.", False),
        ("Earlier in this session: The town I want to visit is Lisbon.", False),
        ("Ada wants to visit Lisbon, the town.", False),
        ("The concert starts at seven on Friday, Ada.", False),
        ("At seven on Friday (asked: When does the concert start?)", False),
        # Answers that say nothing definite.
        ("I have heard nothing about that here, Ada.", False),
        ("No language model is configured, so I answer only with what was said here.", False),
        # Statements of the bot itself.
        ("The concert hall seats 900 people.", True),
        ("I'll remind you about the lemonade tomorrow.", True),
        ("The invoice is due on Tuesday.", True),
        ("As I said, the last train leaves at 23:10.", True),
        ("The concert starts at nine on Friday.", True),
        ("Let me tell you: the ferry to Braemar takes 40 minutes.", True),
    ],
)
def test_only_what_nobody_told_it_is_its_own(text: str, lacking: bool) -> None:
    """Only what nobody told the bot is its own statement. Quotations, reports, paraphrases and excuses are not."""
    told = PeopleClaims(tuple(claim_of(fact(*each)) for each in TOLD), frozenset({"ada", "ben", "chloe", "roomtone"}))
    assert told.is_new(fact(BOT, text)) is lacking


def test_an_answer_that_quotes_leaves_the_fact_to_who_said_it() -> None:
    """A quoted fact stays with the person who said it, within a batch and long after. A question that the quotation
    answers is closed, and a question without an answer stays open.
    """
    lemonade = "I will bring the lemonade and two loaves of fresh bread."
    question = turn(1, "Roomtone, who is bringing the lemonade?", speaker="Chloe")
    quotation = bot_turn(2, f"Just now, Ben said: {lemonade}")
    assert kept(turn(0, lemonade, speaker="Ben"), question, quotation) == [f"Ben: {lemonade}"]
    assert kept(question, quotation, before=known(fact("Ben", lemonade))) == []
    assert kept(question, bot_turn(2, "I have heard nothing about that here, Chloe.")) == [
        "Chloe: Roomtone, who is bringing the lemonade?"
    ]


def test_what_it_looked_up_is_kept_as_its_own() -> None:
    """A fact that the bot looked up, and that nobody else said, is kept as the bot's own."""
    assert kept(
        turn(0, "Roomtone, look at the invoice."), bot_turn(1, "The invoice of 90 euros is due on Tuesday.")
    ) == ["Roomtone: The invoice of 90 euros is due on Tuesday."]


def test_it_corrects_nobody_but_itself() -> None:
    """A statement of the bot never replaces a fact of a person, because it may be a stale quotation or an invention.
    The bot can correct itself, and people can correct the bot.
    """
    code = known(fact("Ada", "The gate code is 7023."))
    (wrong,) = extract_facts([bot_turn(0, "The gate code is 4411.")], start=Seq(0), known=code)
    assert wrong.supersedes == ()
    assert kept(turn(0, "The gate code is 7023."), bot_turn(1, "Actually the gate code is 4411.")) == [
        "Ada: The gate code is 7023.",
        "Roomtone: Actually the gate code is 4411.",
    ]
    own = known(fact(BOT, "The last train leaves at 23:10."))
    (again,) = extract_facts([bot_turn(0, "The last train leaves at 22:40.")], start=Seq(0), known=own)
    assert again.supersedes == ("s#0",)
    (by_ada,) = extract_facts([turn(0, "No, the last train leaves at 22:40.")], start=Seq(0), known=own)
    assert by_ada.supersedes == ("s#0",)
    superseding = replace(again, supersedes=("s#0", "s#1"))
    assert supersede_own_facts(superseding, known(own[0].claim.fact, code[0].claim.fact)).supersedes == ("s#0",)


@given(
    said=st.lists(
        st.sampled_from([text for _, text in TOLD[:3]] + ["My sister Marta works in Lisbon now."]), min_size=1
    ),
    frame=st.sampled_from(
        ["Just now, Ben said: {}", "A minute ago, Ada said: {}", "Earlier in this session: {}", "{}"]
    ),
)
def test_no_quotation_of_a_batch_becomes_a_fact_of_the_bot(said: list[str], frame: str) -> None:
    """No quotation becomes a fact of the bot, however often and in whatever order the bot answers."""
    people = [turn(seq, text, speaker="Ben") for seq, text in enumerate(said)]
    bot = [bot_turn(len(said) + number, frame.format(text)) for number, text in enumerate(said)]
    assert not [each for each in kept(*people, *bot) if each.startswith(BOT)]
