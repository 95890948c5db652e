"""Find names and numbers in a summary that nobody said.

This module deliberately shares no code with `compaction.summary.checks`, because it checks that code. A name is a
capitalised word inside a sentence, or one at the beginning that is followed by a verb such as 'said'. A number is
digits or number words in any form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

from benchmarks.memory.judges.text_matching import read_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _numbered(text: str, *, start: int, step: int = 1) -> dict[str, int]:
    """Map each word to its number. The first word's number is `start` times `step`."""
    return {word: step * number for number, word in enumerate(text.split(), start)}


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# A letter and the mark before the next one of a word that is spelled out: 'D-V-D', 'N_T_S_C'.
_SPELLED = re.compile(r"(?<![^\W_])([^\W_])[-_ ](?=[^\W_](?![^\W_]))")
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
# 'Key facts:' or '**Decisions**:' in front of a line is a heading, not a claim.
_LABEL = re.compile(r"^\s*(?:[-*•#>]+\s*)*(?:\d+[.)]\s+)?(?:\*\*[^*\n]{1,60}\*\*:?|[A-Z][\w /&-]{0,40}:(?=\s*$))\s*:?")
_HEADING = re.compile(r"^\s*#+\s.*$|^\s*\*\*[^*\n]+\*\*:?\s*$", re.MULTILINE)
_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_ACTS = re.compile(
    r"^(?::\s|'s\b|’s\b|\s+(?:and\s+[A-Z]|is|was|has|had|will|said|says|mention|ask|plan|want|told|tells|agree|need|owe|"
    r"bring|prefer|live|works?|got|likes?|thinks?|suggest|note|inform|confirm|recommend)\w*\b)"
)
# Capitalised words that are not names, such as the first word of 'Everyone is…'.
_NOT_NAMES = _words(
    """a an the i it he she they we you this that these those there here his her their our my your its who what when
    where why how which everyone everybody somebody someone nobody anyone people participants participant users user
    speaker speakers others other one some all both each none no yes ok okay and but or so if then also however
    meanwhile earlier later today tomorrow tonight yesterday now new next last first second third finally additionally
    conversation discussion summary team group players player members member session game monday tuesday wednesday
    thursday friday saturday sunday january february march april may june july august september october november
    december english assistant bot ai human intent artifacts steps context key topics decisions dialogue chat dr mr
    mrs ms uncle aunt grandma mum mom dad little note notes update reminder decision event events fact facts goal
    question answer deadline open plan plans preference preferences"""
)
_UNITS = _numbered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
    start=0,
)
_TENS = _numbered("twenty thirty forty fifty sixty seventy eighty ninety", start=2, step=10)
_LARGE = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_ORDINALS = _numbered(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth",
    start=1,
) | {"thirtieth": 30}
# Number words up to this value are ignored, because 'one of them' and 'the first to go' are figures of speech.
_LOOSE = 3


@dataclass(frozen=True, slots=True)
class InventedEntities:
    """Names and numbers without a source, each once, in alphabetical order."""

    names: tuple[str, ...]
    numbers: tuple[str, ...]


class SourceText:
    """Everything that was said or shown so far, which a summary may therefore mention."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._words: set[str] = set()
        self._numbers: set[str] = set()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a text whose names and numbers a summary may mention."""
        self._words.update(_stems(text), _stems(_SPELLED.sub(r"\1", text)))
        self._numbers.update(_numbers(text, told=True))

    def inventions(self, summary: str) -> InventedEntities:
        """Return the names and numbers of a summary that have no source."""
        names: set[str] = set()
        numbers: set[str] = set()
        for line in _HEADING.sub("", summary).splitlines():
            plain = _LIST_MARK.sub("", _LABEL.sub("", line)).replace("*", "").replace("`", "")
            numbers.update(_numbers(plain, told=False) - self._numbers)
            for sentence in read_sentences(plain):
                names.update(name for name in _names(sentence) if _stem(name) not in self._words)
        return InventedEntities(tuple(sorted(names)), tuple(sorted(numbers)))


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text)}


def _stem(word: str) -> str:
    """Return a word in lower case without a genitive or plural ending."""
    lowered = word.casefold().replace("’", "'")
    lowered = lowered.removesuffix("'s").removesuffix("'")
    return lowered[:-1] if len(lowered) > 3 and lowered.endswith("s") else lowered


def _names(sentence: str) -> set[str]:
    found: set[str] = set()
    words = list(_WORD.finditer(sentence))
    for index, match in enumerate(words):
        word = match.group()
        if not word[0].isupper() or len(word) < 2 or word.split("'")[0].casefold() in _NOT_NAMES:
            continue
        before = sentence[: match.start()].rstrip()
        begins = index == 0 or before.endswith((":", "“", '"', "(", "—", "–"))
        if not begins or _ACTS.match(sentence[match.end() :]):
            found.add(word)
    return found


def _numbers(text: str, *, told: bool) -> set[str]:
    """Return the numbers in a text as digits. `told`: the text is a source, so return every form that a summary may
    use.
    """
    found: set[str] = set()
    for match in _DIGITS.finditer(text):
        whole = match.group().replace(",", "")
        found.add(whole.rstrip("."))
        if told:
            parts = re.split(r"[.,:]", match.group())
            found.update(parts)
            found.update(_retold(parts))
    lowered = [word.casefold() for word in _WORD.findall(text.replace("-", " "))]
    skip = False
    for word, following in zip_longest(lowered, lowered[1:], fillvalue=""):
        if skip:
            skip = False
            continue
        number = _UNITS.get(word, _ORDINALS.get(word))
        if word in _TENS:
            number = _TENS[word]
            unit = _UNITS.get(following, _ORDINALS.get(following, 0))
            if 0 < unit < 10:
                number += unit
                skip = True
        if number is not None and (told or number > _LOOSE):
            found.add(str(number))
    if told:
        found.update(_spoken_times(lowered))
        found.update(_large_numbers(lowered))
    return found


def _large_numbers(words: list[str]) -> set[str]:
    """Return the numbers above 99 in 'three hundred and sixty', 'a hundred' or, digit by digit, 'nine nine'."""
    found: set[str] = set()
    whole, below_thousand, digits = 0, 0, ""
    for word, following in pairwise([*words, "", ""]):
        number = _UNITS.get(word, _TENS.get(word))
        digits = digits + str(number) if number is not None and number < 10 else ""
        if len(digits) > 1:
            found.add(digits)
        if number is not None:
            below_thousand += number
        elif word in _LARGE and _LARGE[word] == 100:
            below_thousand = max(1, below_thousand) * 100
        elif word in _LARGE:
            whole, below_thousand = whole + max(1, below_thousand) * _LARGE[word], 0
        elif not (word == "and" and (following in _UNITS or following in _TENS)):
            whole = below_thousand = 0
        if whole + below_thousand > 99:
            found.add(str(whole + below_thousand))
    return found


def _retold(parts: list[str]) -> set[str]:
    """Return the other forms of a clock time, such as 19:30 for 7:30."""
    if len(parts) != 2 or not parts[0] or int(parts[0]) > 23:
        return set()
    hour, minute = int(parts[0]), parts[1]
    other = (hour + 12) % 24
    return {str(other), f"{other}:{minute}", f"{hour % 12 or 12}:{minute}"}


def _spoken_times(words: list[str]) -> set[str]:
    """Return the clock times meant by 'half past seven', 'ten to five' or 'seven thirty'."""
    found: set[str] = set()
    minutes = {"half": 30, "quarter": 15} | _UNITS | _TENS
    for first, second, third in zip(words, words[1:], words[2:], strict=False):
        if second in {"past", "to"} and first in minutes and third in _UNITS:
            past = minutes[first] if second == "past" else 60 - minutes[first]
            hour = _UNITS[third] - (second == "to")
            for each in (hour % 12 or 12, hour % 12 + 12):
                found |= {f"{each}:{past:02}", str(each)}
    for first, second in pairwise(words):
        if first in _UNITS and (second in _TENS or second in {"o", "fifteen"}) and second != "o":
            minute = _TENS.get(second, 15)
            for each in (_UNITS[first] % 12 or 12, _UNITS[first] % 12 + 12):
                found |= {f"{each}:{minute:02}"}
    for word in words:
        if word in _UNITS and _UNITS[word] <= 12:
            for each in (_UNITS[word], _UNITS[word] + 12):
                found |= {f"{each}:00"}
    return found
