"""Cuts what somebody said into statements that can stand alone: whole sentences, or whole clauses of long ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compaction.language.languages import language_of
from compaction.language.text import sentences, words

if TYPE_CHECKING:
    from compaction.language.language import Language

# Clauses shorter than this are joined to the next one: 'and then' says nothing alone.
_LEAST_CHARS = 40
# Where a clause ends whatever the language.
_PAUSE = r"(?<=[,;:])\s+|(?<=[，、；])\s*|\s+[—–-]\s+"
# At which word a condition of what follows ('But if it rains, …') begins, and one of what came before ('only if', …).
_LEADS = (0, 1)
_LIMITS_WHAT_IS_BEFORE = (0, 2, 3, 4, 5)
_FIRST_WORD = re.compile(r"[\s,.…]*([^\W_]+(?:['’][^\W_]+)*)([\s,.…]*)")


def statements(text: str, max_chars: int) -> list[str]:
    """Return the sentences of a text without their preambles. One of `max_chars` or more is cut into whole clauses.

    A clause that is too long as well is left out, because half a clause may say something else.
    """
    found: list[str] = []
    for sentence in sentences(text):
        bare = without_preamble(sentence)
        found += [bare] if len(bare) < max_chars else _clauses(bare, max_chars)
    return found


def without_preamble(sentence: str) -> str:
    """Return a sentence from its first word that says something: 'Right, um, we leave' is 'We leave'."""
    language = language_of(words(sentence))
    begin = 0
    while (match := _FIRST_WORD.match(sentence, begin)) is not None and match.end() < len(sentence):
        word = match[1].casefold()
        if word not in language.fillers and not (word in language.openers and "," in match[2]):
            break
        begin = match.end()
    rest = sentence[begin:]
    return rest[:1].upper() + rest[1:] if begin else sentence


def _clauses(sentence: str, max_chars: int) -> list[str]:
    language = language_of(words(sentence[: 2 * max_chars]))
    joint = rf"(?:{'|'.join(language.joints)})\s"
    found: list[str] = []
    for section in _sections(sentence, language):
        whole = _condition_at(section, language) >= 0
        for piece in filter(None, [section] if whole else re.split(rf"(?i){_PAUSE}|\s+(?={joint})", section)):
            if found and len(found[-1]) < _LEAST_CHARS and len(found[-1]) + len(piece) < max_chars:
                found[-1] += f" {piece}"
            else:
                found.append(piece)
    bare = [re.sub(rf"(?i)^{joint}", "", each) for each in found if len(each) < max_chars]
    return [each[:1].upper() + each[1:] for each in bare]


def _sections(sentence: str, language: Language) -> list[str]:
    """Return the parts of a sentence that begin with 'but', 'because' and the like. All after 'If …' is in one with it,
    and 'but only if …' in one with what is before it, as is 'because …, unless …' without a main clause ('…, and …').
    """
    found: list[str] = []
    leads = False
    breaks = (each for each in language.joints - {language.conjunction} if _condition_at(each, language) < 0)
    for section in re.split(rf"(?i)\s+(?=(?:{'|'.join(breaks)})\s)", sentence):
        at = _condition_at(section, language)
        subordinate = section.partition(" ")[0].casefold() not in language.fillers
        limits = subordinate and _condition_at(section.partition(f", {language.conjunction} ")[0], language) > 1
        if found and (leads or limits or at in _LIMITS_WHAT_IS_BEFORE):
            found[-1] += f" {section}"
        else:
            found.append(section)
            leads = at in _LEADS
    return found


def _condition_at(text: str, language: Language) -> int:
    """Return the position of the first word that begins a condition; -1 if there is none."""
    said = words(text)
    cues = language.cue_places(said, [language.stem(each) for each in said])
    return min(cues["supposing"] | cues["limiting"], default=-1)
