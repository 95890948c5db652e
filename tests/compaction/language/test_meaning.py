"""Tests for `compaction.language.meaning`: what is read in a sentence, in English and in German."""

from __future__ import annotations

import sys
import time

import pytest

from compaction.language.meaning import answers, contradicts, meaning, replaces
from compaction.language.text import sentences
from compaction.model import FactKind
from tests.compaction.memory.corrected_statements import OTHER_THING, OTHER_THING_APART, REPLACED, REPLACED_APART


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("The code is 7719.", {"7719"}),
        ("fourteen of us", {"14"}),
        ("twenty-five euros", {"25"}),
        ("She owes me thirty-one for one book.", {"31"}),
        ("two hundred and twenty one steps", {"221"}),
        ("Between two hundred and three hundred euros.", {"200", "300"}),
        ("Seven thousand and eight thousand.", {"7000", "8000"}),
        ("two hundred thousand and three hundred thousand", {"200000", "300000"}),
        ("two million and three million two hundred thousand", {"2000000", "3200000"}),
        ("Only one of them is left.", set()),
        ("two hundred people", {"200"}),
        ("It is three hundred and sixty for two nights.", {"360", "2"}),
        ("I bought a hundred and Bob twenty.", {"100", "20"}),
        ("It is 4,411 in all.", {"4411"}),
        ("My flight is at 6:40 on Friday.", {"6:40", "friday"}),
        ("It starts at 00:00, or at 00:30.", {"0", "0:30"}),
        ("It takes 01:00:00, until 19:00:00.", {"1:00:00", "19:00"}),
        ("The code is 007, and 0.5 is left.", {"7", "0.5"}),
        ("I may come in May.", {"may"}),
        ("She turns ninety in June.", {"90", "june"}),
        ("Am Freitag um vierzehn Uhr.", {"freitag", "14"}),
        ("Im März sind es fünfundzwanzig Euro.", {"märz", "25"}),
    ],
)
def test_values_are_read(text: str, values: set[str]) -> None:
    """Numbers, weekdays and months are values, in words and in digits."""
    assert meaning(text).values == values


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("I'm not allergic to peanuts.", {"allerg"}),
        ("I can't come on Friday.", {"come"}),
        ("I eat no fish.", {"fish"}),
        ("I never finished the season.", {"finish"}),
        ("I'm allergic to peanuts.", set()),
        ("Ich esse kein Fleisch.", {"fleisch"}),
        ("Ich bin nicht allergisch gegen Nüsse.", {"allerg"}),
        ("Ich komme nicht.", {"komm"}),
    ],
)
def test_denied_words_are_read(text: str, denied: set[str]) -> None:
    """The word that a negation belongs to is denied."""
    assert meaning(text).denied >= denied
    assert meaning(text).negated is bool(denied)


def test_names_need_a_capital_inside_the_sentence() -> None:
    """A word that opens a sentence is a name only if it is known as one."""
    assert meaning("Waldok met Nott in Zadash.").names == {"nott", "zadash"}
    assert meaning("Waldok met Nott in Zadash.", frozenset({"waldok"})).names == {"waldok", "nott", "zadash"}
    assert meaning("Nadja hat den Schlüssel.", frozenset({"nadja"})).names == {"nadja"}


def test_title_case_makes_no_names() -> None:
    """The capitals of a sentence in title case tell no names, because recognisers write some sentences so."""
    assert not meaning("Tell Us Again Where The Little Bag Hangs.").names
    assert meaning("When I met Mara we left.").names == {"mara"}
    assert meaning("We met. Then Mara left.").names == {"mara"}


def test_topics_take_no_more_room_than_their_copy() -> None:
    """An open session keeps thousands of these sets; one that has grown word by word has room for more."""
    topics = meaning("The bicycle stands beside the river under an old bridge.").topics
    assert len(topics) == 6
    assert sys.getsizeof(topics) == sys.getsizeof(frozenset({*topics}))


def test_unspaced_scripts_have_topics() -> None:
    """A script without spaces gives pairs of characters."""
    assert "花生" in meaning("我对花生过敏。").topics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Who has the map?", True),
        ("where is the map", True),
        ("do you have the map", True),
        ("I have the map", False),
        ("wo ist die Karte", True),
        ("hat jemand die Karte", True),
        ("weißt du noch wo die Karte ist", True),
        ("Ich habe die Karte.", False),
        ("谁有地图？", True),
    ],
)
def test_questions_are_known(text: str, expected: bool) -> None:
    """A question is known by its mark, or by its opening where there is no mark."""
    assert meaning(text).asks is expected


@pytest.mark.parametrize(
    "text",
    [
        "The raid is cancelled.",
        "I don't live there any more.",
        "Scratch that, it's Friday.",
        "Der Termin ist abgesagt.",
        "Wir treffen uns doch nicht.",
    ],
)
def test_changes_are_announced(text: str) -> None:
    """A sentence that takes something back announces a change."""
    assert meaning(text).announces


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("My sister lives in Graz.", FactKind.LASTING),
        ("Ich weiß nicht, ob wir morgen fahren.", FactKind.OPEN),
        ("The door code is 4417.", FactKind.LASTING),
        ("I'll call the landlord.", FactKind.LASTING),
        ("We decided to take the train.", FactKind.DECISION),
        ("Who has the map?", FactKind.OPEN),
        ("They are playing a game.", FactKind.DOING),
        ("Meine Schwester wohnt in Graz.", FactKind.LASTING),
        ("Der Plan steht, abgemacht.", FactKind.DECISION),
    ],
)
def test_kinds_are_told_by_cues(text: str, kind: FactKind) -> None:
    """The kind of a fact is told by cues."""
    assert meaning(text).kind is kind


@pytest.mark.parametrize(
    ("worth", "chatter"),
    [
        ("I have a jeweller's kit.", "I have to pee so bad."),
        ("The code's 7719.", "Can you hear me now?"),
        ("Dad's back in hospital.", "One sec, loading."),
        ("Ich habe mir das Handgelenk gebrochen.", "Hört ihr mich jetzt?"),
        ("Der Code ist 7719.", "Moment mal, es klingelt."),
    ],
)
def test_chatter_weighs_less(worth: str, chatter: str) -> None:
    """A fact weighs more than chatter."""
    assert meaning(worth).weight >= 1.0 > meaning(chatter).weight


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("I can come on Friday.", "I can't come on Friday.", True),
        ("I'm allergic to peanuts.", "I'm not allergic to peanuts.", True),
        ("I can come on Friday.", "I can't come on Sunday.", False),
        ("I eat meat.", "I don't eat fish.", False),
        ("Ich esse Fleisch.", "Ich esse kein Fleisch.", True),
        ("Ich komme am Freitag.", "Ich komme am Freitag nicht.", True),
    ],
)
def test_opposites_contradict(one: str, other: str, expected: bool) -> None:
    """Two sentences contradict each other if one denies what the other says of the same thing."""
    assert contradicts(meaning(one), meaning(other)) is expected
    assert contradicts(meaning(other), meaning(one)) is expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("The raid is cancelled, sorry.", "The raid is on for Thursday.", True),
        ("I drink coffee again now.", "I quit coffee last month.", True),
        ("I can't bring the cake after all.", "I'll bring the cake.", True),
        ("And the vet on Thursday with the cat.", "I see the dentist on Tuesday.", False),
        ("Room 14 costs 110 euros.", "Room 12 costs 90 euros.", False),
        ("Das Treffen ist jetzt am Freitag.", "Das Treffen ist am Donnerstag.", True),
    ],
)
def test_later_word_replaces(new: str, old: str, expected: bool) -> None:
    """The same person's later word about the same thing replaces the earlier one."""
    assert replaces(meaning(new), meaning(old), same_speaker=True) is expected


def test_nobody_replaces_what_others_say_of_themselves() -> None:
    """What somebody says of themselves is replaced by nobody else's words."""
    assert not replaces(meaning("My code is 9052 now."), meaning("My code is 4417."), same_speaker=False)


@pytest.mark.parametrize(("old", "new"), OTHER_THING)
def test_value_of_another_thing_replaces_nothing(old: str, new: str) -> None:
    """A person may have two codes: what their value is of stands before it, and must be the same."""
    assert not replaces(meaning(new), meaning(old), same_speaker=True)


def test_things_are_told_apart_in_talk_that_nothing_was_tuned_on() -> None:
    """Nine of ten pairs are told apart, and every later value of the same thing still replaces the earlier one. Two
    levels of a game are told apart by numbers alone.
    """
    wrong = [new for old, new in OTHER_THING_APART if replaces(meaning(new), meaning(old), same_speaker=True)]
    assert wrong == ["Level four has five bosses now."]
    for old, new, _ in (*REPLACED, *REPLACED_APART):
        assert replaces(meaning(new), meaning(old), same_speaker=True), new


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("My bike lock code is 7702 now.", {"bike", "lock", "code"}),
        ("My dog is called Rex.", {"dog", "call"}),
        ("The meeting with Cy is on Tuesday.", {"meet", "cy"}),
        ("Friday is the deadline.", set()),
        ("The raid is cancelled.", set()),
    ],
)
def test_thing_is_what_stands_before_the_value(text: str, thing: set[str]) -> None:
    """The topics and names before the first value; without a value, the topics before the first name."""
    assert meaning(text).thing == thing


@pytest.mark.parametrize(
    ("statement", "at_once", "expected"),
    [
        ("The deposit is 200 euros.", True, True),
        ("The deposit is 200 euros.", False, False),
        ("The cabin is 200 euros.", True, False),
        ("If the deposit is 200 euros, I'm out.", True, False),
        ("Is the deposit 200 euros?", True, False),
    ],
)
def test_question_of_one_thing_is_answered_at_once(statement: str, at_once: bool, expected: bool) -> None:
    """Much is said of one thing, so only what follows a question about it at once is its answer."""
    asked = meaning("How much is the deposit?")
    assert answers(meaning(statement), asked, at_once=at_once) is expected


def test_answer_takes_one_of_the_values_that_were_asked() -> None:
    """Of several values an answer has one; another value leaves the question open."""
    asked = meaning("Do we meet at eight or nine?")
    assert answers(meaning("We meet at nine."), asked, at_once=False)
    assert not answers(meaning("We met at seven."), asked, at_once=False)


@pytest.mark.parametrize("piece", ["a-", "A. ", "_", '."', "not ", "1. mai ", "肉", "x", "one hundred "])
def test_long_texts_take_linear_time(piece: str) -> None:
    """A hostile text of 100,000 characters is read at once; a rule that goes back over it would take minutes."""
    text = piece * (100_000 // len(piece))
    before = time.process_time()
    meaning(text)
    sentences(text)
    assert time.process_time() - before < 5.0
