"""Analyses text without a model: sentences, names, numbers, concepts, and cues of lasting facts.

Made for English. In other languages sentences, numbers and names are still found, but cues are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from compaction.language.lexicon import (
    ACTIVITY_CUES,
    ADDITION_CUES,
    BARE_ANSWER,
    CALENDAR,
    CHANGE_CUES,
    COMMON_OPENERS,
    DATE_CUES,
    DECISION_CUES,
    INSTEAD_CUES,
    MONEY_CUES,
    NUMBER_WORDS,
    ONESELF,
    OPEN_CUES,
    PASSING_CUES,
    PERSONAL_CUES,
    PREAMBLE,
    REPLACEMENT_CUES,
    SMALL_NUMBER_WORDS,
    STATEMENT_CUES,
    STOPWORD_NAMES,
    STOPWORDS,
    TAG_QUESTION,
)
from compaction.model import FactKind
from compaction.sentence_cache import sentence_cache

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Digits, with the characters that may be inside a figure: 4,411  7:30  3.5  2024-05-01.
_FIGURE = re.compile(r"\d+(?:[.,:/-]\d+)*")
# The end of a sentence: stops and closing quotes or brackets before white space. Ideographic stops need no white space.
# The lookbehind makes a row of stops match only at its beginning; otherwise a long row would be tried from each stop.
_STOP = re.compile(r"""(?<![.!?…؟۔।॥])[.!?…؟۔।॥]+["”’')\]]*(?=\s)|[。！？]+["”’」』）)\]]*""")
_ENDS_A_SENTENCE = re.compile(r"""[.!?…؟۔।॥。！？]["”’」』）')\]]*$""")
QUESTION_MARKS = ("?", "？", "؟")
# A full stop after one of these does not end a sentence.
_ABBREVIATION = re.compile(r"\b(?:[A-Z]|(?i:mr|mrs|ms|dr|prof|vs|e\.g|i\.e|a\.m|p\.m|jr|sr|approx))\.$")
# Marks of lists, headings, emphasis and code, which don't belong in a plain paragraph.
_MARKS = re.compile(r"[*#`~|<>]+|^\s*[-•–]\s+|(?<=\s)_+|_+(?=\s)")


# How much each kind of cue adds to the worth of a sentence. Tune these with `roomtone bench memory` on its tuning
# evenings.
_KEPT_FOR = (
    (DECISION_CUES, 0.8),
    (PERSONAL_CUES, 0.7),
    (DATE_CUES, 0.5),
    (MONEY_CUES, 0.4),
    (OPEN_CUES, 0.2),
)
# The worth of a question. It is lower, because a question is kept as open and not as known.
_ASKED = 0.4
# The worth of a sentence about the passing moment is multiplied by this.
_PASSING = 0.35


@dataclass(frozen=True, slots=True)
class Concepts:
    """What a sentence is about. All words are in lower case, without endings.

    A correction replaces `values` (figures, names, calendar words). `topics` are the other meaningful words; they show
    whether two sentences are about the same thing.
    """

    topics: frozenset[str]
    figures: frozenset[str]
    names: frozenset[str]

    @property
    def values(self) -> frozenset[str]:
        """Return figures and names together."""
        return self.figures | self.names

    @property
    def all(self) -> frozenset[str]:
        return self.topics | self.figures | self.names


def plain(text: str) -> str:
    """Return the text on one line, without list, heading, emphasis or code marks and control characters."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(_MARKS.sub(" ", text).split())


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line. Text without full stops is one sentence."""
    text = plain(text)
    found: list[str] = []
    begin = 0
    for stop in _STOP.finditer(text):
        if not _ABBREVIATION.search(text, begin, stop.end()):
            found.append(text[begin : stop.end()].strip())
            begin = stop.end()
    rest = text[begin:].strip()
    return [*found, rest] if rest else found


def ends_a_sentence(text: str) -> bool:
    """Return whether the text ends with the end of a sentence."""
    return _ENDS_A_SENTENCE.search(text) is not None


def as_sentence(text: str, max_chars: int) -> str:
    """Return the text as one sentence of at most `max_chars`. It is cut after a clause or word and ends with a full
    stop.
    """
    text = _closed(plain(text))
    if len(text) <= max_chars:
        return text
    cut = text[: max_chars - 1]
    clause = max(cut.rfind(", "), cut.rfind("; "), cut.rfind(" — "), cut.rfind(". "))
    word = cut.rfind(" ")
    if clause >= max_chars // 2:
        cut = cut[:clause]
    elif word > 0:
        cut = cut[:word]
    return _closed(cut)


def _closed(text: str) -> str:
    text = text.rstrip(" ,;:-–—")
    return text if not text or ends_a_sentence(text) else f"{text}."


def whole_sentences(text: str, max_chars: int) -> str:
    """Return as many whole sentences from the start of the text as fit. Returns an empty text if none fits."""
    kept = ""
    for each in sentences(text):
        longer = f"{kept} {each}".strip()
        if len(longer) > max_chars or not ends_a_sentence(each):
            break
        kept = longer
    return kept


def words(text: str) -> list[str]:
    """Return the words and figures of a text in lower case, with straight apostrophes."""
    return [match.group().casefold().replace("’", "'") for match in _WORD.finditer(text)]


def figures(text: str, *, small: bool = False) -> frozenset[str]:
    """Return the numbers in a text as digits, from both digits and number words ('fourteen' is '14').

    A compound like 'twenty-five' gives 25, 20 and 5, so that it matches every way of writing it. `small` also counts
    'one', 'two' and 'once'.
    """
    found = {_figure(match.group()) for match in _FIGURE.finditer(text)}
    before: int | None = None
    for word in words(text):
        digits = NUMBER_WORDS.get(word) or SMALL_NUMBER_WORDS.get(word)
        if digits is None:
            before = None
            continue
        if small or word in NUMBER_WORDS:
            found.add(digits)
        value = int(digits)
        if before is not None:
            if value >= 100 > before:
                value *= before
            elif value < 10 and before in range(20, 100, 10):
                value += before
            found.add(str(value))
        before = value
    return frozenset(found)


def _figure(written: str) -> str:
    """Return a figure without thousands commas and leading zeros, so that '4,411' and '4411' are the same number."""
    bare = re.sub(r",(?=\d{3}\b)", "", written)
    return bare.lstrip("0") or "0"


def names(text: str) -> frozenset[str]:
    """Return the words that look like names, in lower case.

    These are words with a capital letter. The first word of a sentence counts only if it is not a known ordinary word.
    """
    found: set[str] = set()
    for sentence in sentences(text):
        for position, match in enumerate(_WORD.finditer(sentence)):
            word = match.group()
            if not word[0].isupper():
                continue
            bare = base(word.casefold().replace("’", "'"))
            if word.casefold().replace("’", "'") in STOPWORDS and not (position > 0 and bare in STOPWORD_NAMES):
                continue
            if bare in NUMBER_WORDS:
                continue
            if position == 0 and not word[1:].isupper() and _ordinary_opener(bare):
                continue
            found.add(bare)
    return frozenset(found)


def _ordinary_opener(word: str) -> bool:
    return (
        word in STOPWORDS
        or word in COMMON_OPENERS
        or f"{word}s" in COMMON_OPENERS
        or word.endswith(("ing", "ed", "ly"))
    )


def base(word: str) -> str:
    """Return a word without its possessive or plural ending, so that 'cabins' and 'cabin' are the same."""
    word = word.removesuffix("'s").removesuffix("'")
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def is_stopword(word: str) -> bool:
    """Return whether a lower-case word carries no meaning of its own."""
    return word in STOPWORDS


@sentence_cache(most=4_096)
def concepts(text: str) -> Concepts:
    """Return the topics, figures and names of a sentence."""
    its_figures = figures(text)
    # The first word of a sentence has a capital letter in any case, so it can't be recognised as a name by that. It
    # counts as a topic, unless it is repeated with a capital letter.
    opener = _WORD.search(text)
    later_names = names(text)
    first = base(opener.group().casefold()) if opener is not None else ""
    its_names = later_names - {first} | ({first} if first in later_names and _repeated_capital(text, first) else set())
    topics = {
        base(word)
        for word in words(text)
        if len(word) > 1 and not is_stopword(word) and not word[0].isdigit() and word not in NUMBER_WORDS
    }
    calendar = {word for word in words(text) if word in CALENDAR}
    its_values = frozenset(its_names | calendar)
    return Concepts(topics=frozenset(topics) - its_values, figures=its_figures, names=its_values)


def _repeated_capital(text: str, word: str) -> bool:
    return sum(base(each.group().casefold()) == word for each in _WORD.finditer(text) if each.group()[0].isupper()) > 1


def kind_of(sentence: str) -> FactKind:
    """Return where a summary would say this sentence."""
    if asks(sentence) or OPEN_CUES.search(sentence):
        return FactKind.OPEN
    if DECISION_CUES.search(sentence):
        return FactKind.DECISION
    if PERSONAL_CUES.search(sentence):
        return FactKind.LASTING
    if ACTIVITY_CUES.search(sentence):
        return FactKind.DOING
    return FactKind.OTHER


def durability(sentence: str) -> float:
    """Return how much a sentence is worth keeping, judged by its cues alone. Ordinary talk is 1.0."""
    if asks(sentence):
        # Cues of a commitment don't count inside a question, because a question commits nobody.
        return _ASKED * (_PASSING if is_passing(sentence) else 1.0)
    weight = 1.0 + sum(worth for cues, worth in _KEPT_FOR if cues.search(sentence))
    return weight * _PASSING if weight < 2.0 and is_passing(sentence) else weight


def is_passing(sentence: str) -> bool:
    """Return whether a sentence is only about the present moment: the call, the game round, or the speaker's state."""
    return PASSING_CUES.search(sentence) is not None


def without_preamble(sentence: str) -> str:
    """Return a sentence without filler words at its beginning: 'Right, listen, we leave at nine' gives 'We leave at
    nine'.
    """
    rest = PREAMBLE.sub("", sentence, count=1)
    return rest[:1].upper() + rest[1:] if rest != sentence else sentence


def asks_for_a_nod(sentence: str) -> bool:
    """Return whether a sentence is small talk in the form of a question: 'nice weather, isn't it?'"""
    return TAG_QUESTION.search(sentence) is not None and not DECISION_CUES.search(sentence)


def announces_change(sentence: str) -> bool:
    """Return whether a sentence says that something has changed."""
    return CHANGE_CUES.search(sentence) is not None


def change_words(sentence: str) -> frozenset[str]:
    """Return the words that announce a change, without endings. They don't belong to the subject of the sentence."""
    return frozenset(
        base(word)
        for cues in (CHANGE_CUES, REPLACEMENT_CUES)
        for cue in cues.finditer(sentence)
        for word in words(cue.group())
    )


def announces_replacement(sentence: str) -> bool:
    """Return whether a sentence says outright that something replaces something else."""
    return REPLACEMENT_CUES.search(sentence) is not None


def wants_instead(sentence: str) -> bool:
    """Return whether a sentence names something that is wanted instead of something else."""
    return INSTEAD_CUES.search(sentence) is not None


def answers_barely(sentence: str) -> bool:
    """Return whether a sentence is an answer that can't be understood without its question: 'No, it's Friday now.'"""
    return BARE_ANSWER.match(sentence) is not None


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    return sentence.rstrip("\"”’」』 '").endswith(QUESTION_MARKS)


def adds_to_something(sentence: str) -> bool:
    """Return whether a sentence adds something instead of changing something."""
    return ADDITION_CUES.search(sentence) is not None


def speaks_of_oneself(sentence: str) -> bool:
    """Return whether speakers talk about themselves. Such a sentence can't correct another person's:
    birthdays differ.
    """
    return ONESELF.search(sentence) is not None


def states_how_it_is(sentence: str) -> bool:
    """Return whether a sentence says how something is, and not what happened."""
    return STATEMENT_CUES.search(sentence) is not None
