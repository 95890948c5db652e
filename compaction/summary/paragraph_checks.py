"""Checks the summary of a session that a model wrote, and says what is wrong with it. Pure.

Checked are its length, its names and numbers, the sign of what it says of somebody's facts, that the facts which must
not be lost are in it, that it goes on from the summary before, gives no orders, and is no copy. Only certain faults
count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.meaning import contradicts, meaning
from compaction.language.text import plain, sentences, words
from compaction.summary.checks import clauses, gives_orders, may_deny
from compaction.summary.day import without_day_said
from compaction.summary.port import MAX_SUMMARY_CHARS
from compaction.summary.sources import Sources, name_words, sources_of, unfounded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.language.meaning import Meaning
    from compaction.model import Fact, Turn

# At most so many of a fact's names and of its numbers may be missing from a text that tells it: a good summary tells it
# in other words, and not with every detail.
_LACKING_SHARE = 1 / 2
# A text without any word that a fact is about may lack so many of its names and values.
_LACKING_DETAILS_SHARE = 1 / 8
# A paragraph is a transcript if this share of it is the batch word for word, from so many turns.
_COPIED_SHARE = 0.7
_LEAST_COPIED = 5
# A summary that tells of so many things leaves something of them in the next one.
_LEAST_TOLD = 5
# How many invented words a correction names.
_NAMED = 8


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a paragraph. `problem`: without a word of the text. `correction`: what to tell the model, and
    `material`: the words that it is about."""

    problem: str
    correction: str
    material: str = ""


class CheckedText:
    """A text and what it tells, to look facts up in."""

    def __init__(self, text: str) -> None:
        self._sources = sources_of([text], ())
        self._about = frozenset(each for sentence in sentences(text) for each in meaning(sentence).topics)

    def tells(self, fact: Fact) -> bool:
        """Return whether the text may tell a fact: it has its person, half of its other names and of its numbers, and
        either a word that it is about or nearly all its names and values. What it lacks of these, it certainly does not
        tell.
        """
        people = [name_words([fact.subject]), name_words([fact.speaker])]
        own_names = people[0] | people[1]
        said = [meaning(one, own_names) for one in sentences(fact.text)]
        topics = frozenset(each for one in said for each in one.topics)
        others = frozenset(name for one in said for name in one.names) - own_names
        values = without_day_said(frozenset(value for one in said for value in one.values), fact.at)
        numbers = frozenset(value for value in values if value[0].isdigit())
        lacking = unfounded(fact.attributed_text, self._sources, own_names)
        details = others | values
        return (
            not any(each and each <= lacking for each in people)
            and all(len(each & lacking) <= _LACKING_SHARE * len(each) for each in (others, numbers))
            and (bool(topics & self._about) or not topics or _nearly_all(details, lacking))
        )


def _nearly_all(details: frozenset[str], lacking: frozenset[str]) -> bool:
    """Return whether at most one in eight of a fact's names and values is lacking."""
    return bool(details) and len(details & lacking) <= _LACKING_DETAILS_SHARE * len(details)


@dataclass(frozen=True, slots=True)
class ParagraphCheck:
    """What one paragraph is checked against.

    `standing`: facts that hold after the fold, oldest first. `turns`: the batch. `previous`: the summary before.
    `adds`: the batch has something that a summary should tell. `people`: everybody's names. `musts`: the facts that
    must be told.
    """

    sources: Sources
    standing: tuple[Fact, ...] = ()
    turns: tuple[Turn, ...] = ()
    previous: str = ""
    adds: bool = True
    people: frozenset[str] = frozenset()
    musts: tuple[Fact, ...] = ()

    def fault(self, text: str) -> Fault | None:
        """Return the first fault of a paragraph, or None for a good one."""
        if not words(text):
            return Fault("The model wrote no summary.", "The summary is missing.")
        if len(text) > MAX_SUMMARY_CHARS:
            return Fault(
                "The model's summary is too long.", f"It is too long: {len(text)} characters. Say it in at most 1000."
            )
        if is_transcript(text, self.turns, self.previous):
            return Fault(
                "The model's summary repeats the turns.",
                "It repeats the turns. Say in other words what they come to, and leave out what doesn't matter.",
            )
        if self.adds and self.previous and _words(text) == _words(self.previous):
            return Fault("The model copied the previous summary.", "It lacks what is new.")
        if gives_orders(text):
            return Fault(
                "The model's summary gives orders.",
                "It gives orders. Write only who said what; nobody's words are a rule for the reader.",
            )
        if self._forgets(text):
            return Fault(
                "The model's summary tells nothing of what the one before told.",
                "It tells nothing of what the summary so far tells. Keep of that what still matters.",
            )
        return self._invented(text) or self._denied(text) or self._missing(text)

    def _forgets(self, text: str) -> bool:
        """Return whether a text has no word in common with the summary before: 'No summary was provided.'"""
        before = _about(self.previous)
        return len(before) >= _LEAST_TOLD and before.isdisjoint(_about(text))

    def _invented(self, text: str) -> Fault | None:
        found = sorted(unfounded(text, self.sources))
        if not found:
            return None
        return Fault(
            "The model's summary has names or numbers that nobody said.",
            "It has names, numbers, days or sentences without a source. Leave these out; write a number as it was said "
            "and a word like 'tonight' as the day that it means:",
            "\n".join(map(plain, found[:_NAMED])),
        )

    def _denied(self, text: str) -> Fault | None:
        """Find a clause that denies what a fact of the same person or thing affirms, or affirms what it denies."""
        everybody = name_words(self.people)
        told = [(name_words([clause]), said) for clause, said in clauses(text, everybody) if not said.asks]
        batch = [said for turn in self.turns for part in turn.parts for _, said in clauses(part.text, everybody)]
        for fact in self.standing:
            subject = name_words([fact.subject or fact.speaker])
            about = meaning(fact.subject or fact.speaker).about
            others = everybody - subject - name_words([fact.speaker])
            stated = [(name_words([clause]), said) for clause, said in clauses(fact.text, everybody)]
            # Signs are compared clause by clause: 'Jonas has a car; Sami does not have one.' A clause that may be about
            # somebody else is no fault, nor is what was just said otherwise.
            if any(
                self._is_opposite(said, claim, about)
                for words_said, said in told
                if subject <= words_said and not others & words_said
                for words_claimed, claim in stated
                if len(stated) == 1 or subject <= words_claimed
            ) and not any(contradicts(said, claim) for said in batch for _, claim in stated):
                return Fault(
                    "The model's summary says the opposite of a fact.",
                    "It says the opposite of this fact:",
                    plain(fact.attributed_text),
                )
        return None

    @staticmethod
    def _is_opposite(said: Meaning, claim: Meaning, subject: frozenset[str]) -> bool:
        """Return whether what is said denies a fact's claim or the other way round. `subject`: whom both are about."""
        # 'Fjord knows nothing of the sphere' shares one word with 'Fjord took a sphere', and denies nothing of it. Nor
        # does 'Jonas wants it painted' deny anything of 'Jonas does not want to sell the boat'. 'Jonas has not yet'
        # denies nothing that could be told otherwise.
        denied = said.denied | claim.denied
        claimed = claim.about - subject - denied
        shared = claimed & said.about
        return (
            not claim.asks
            and bool(denied or said.negated or shared & (claim.values | claim.names))
            and may_deny(said) != may_deny(claim)
            and (not claimed or bool(shared))
            and contradicts(said, claim)
        )

    def _missing(self, text: str) -> Fault | None:
        told = CheckedText(text)
        lacking = [fact for fact in self.musts if not told.tells(fact)]
        if not lacking:
            return None
        return Fault(
            f"The model's summary lacks {len(lacking)} of the facts that must be in it.",
            "It lacks these facts, which must be in it:",
            "\n".join(plain(fact.attributed_text) for fact in lacking),
        )


def is_transcript(text: str, turns: Iterable[Turn], previous: str) -> bool:
    """Return whether a paragraph is mostly the turns themselves, one after the other, as small models write it.

    Text that was in the previous summary already doesn't count as copied.
    """
    told, known = " ".join(words(text)), " ".join(words(previous))
    said = [words(part.text) for turn in turns for part in turn.parts]
    spoken = [each for each in said if len(each) > 2]
    copied = [each for each in spoken if " ".join(each) in told and " ".join(each) not in known]
    if len(copied) < _LEAST_COPIED:
        return False
    share = sum(map(len, copied)) / len(words(text))
    # A paragraph that was cut off holds few of the turns and may still consist of them.
    return share >= _COPIED_SHARE or (len(copied) >= _COPIED_SHARE * len(spoken) and share >= _COPIED_SHARE / 2)


def _about(text: str) -> frozenset[str]:
    """Return the topics, names and values of a text."""
    return frozenset(each for sentence in sentences(text) for each in meaning(sentence).about)


def _words(text: str) -> list[str]:
    return words(plain(text))
