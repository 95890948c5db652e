"""Names and things that a stretch of talk was about, as one sentence: 'They talked about Braemar, the tent and Nico.'

Gists without a model begin with such a sentence, so that chapters and the summary can name what was talked about
without reading the turns again. Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from compaction.language.languages import LANGUAGES, language_of
from compaction.language.text import sentences, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.language.language import Language

_CAPITALISED = re.compile(r"[^\W\d_a-zß-öø-ÿ][\w'’-]*(?:\s+(?:(?:of|the|von|der)\s+)?[^\W\d_a-zß-öø-ÿ][\w'’-]*)*")
# What stands before a word inside a sentence: two characters.
_WITHIN = re.compile(r"[\w,;:'’][ ]$")
_POSSESSIVE = re.compile(r"['’]s?$")
# The first of a list was said most often; each further one counts a little less.
_RANK_STEP = 0.15


def count_names(texts: Iterable[str], names: frozenset[str], speakers: Iterable[str]) -> Counter[str]:
    """Return how often each name was said, as it is written, neighbouring words as one. `names`: in lower case.

    The speakers themselves are left out, because the summary names them anyway.
    """
    people = {word for speaker in speakers for word in words(speaker)}
    counts: Counter[str] = Counter()
    for text in texts:
        for match in _CAPITALISED.finditer(text):
            parts = match.group().split()
            while parts and _bare(parts[0]).casefold() not in names:
                parts = parts[1:]
            written = _bare(" ".join(parts))
            if len(parts) == 1 and not _WITHIN.search(text[max(0, match.start() - 2) : match.start()]):
                # A word that opens a sentence has its capital letter from that.
                continue
            if parts and not {word.casefold() for word in written.split()} <= people:
                counts[written] += 1
    return counts


def subjects_sentence(counts: Mapping[str, float], *, language: Language, max_chars: int) -> str:
    """Return a sentence of at most `max_chars` that names the most frequent ones; empty if none fits."""
    chosen: list[str] = []
    order = {name: place for place, name in enumerate(counts)}
    for name in sorted(counts, key=lambda each: (-counts[each], order[each])):
        # After 'Mrs' a full stop ends no sentence.
        if any(name in each or each in name for each in chosen) or len(sentences(f"{name}. {name}.")) == 1:
            continue
        if len(_sentence([*chosen, name], language)) > max_chars:
            break
        chosen.append(name)
    return _sentence(chosen, language) if chosen else ""


def subjects_in(gist: str) -> list[str]:
    """Return the names that a gist's sentence of subjects lists; none without such a sentence."""
    for first in sentences(gist)[:1]:
        for language in LANGUAGES:
            before, _, after = language.talked_about.partition("{}")
            if first.startswith(before) and first.endswith(after):
                listed = first[len(before) : len(first) - len(after)]
                return [name for part in listed.split(", ") for name in part.split(f" {language.conjunction} ")]
    return []


def rank_weights(gists: Iterable[tuple[Sequence[str], float]]) -> dict[str, float]:
    """Return the weight of each name in these lists, each with the number of batches that it stands for."""
    weights: defaultdict[str, float] = defaultdict(float)
    for names, batches in gists:
        for rank, name in enumerate(names):
            weights[name] += batches / (1.0 + _RANK_STEP * rank)
    return dict(weights)


def language_of_texts(texts: Sequence[str]) -> Language:
    """Return the language that most of these texts are in."""
    return language_of(words(" ".join(texts[:40])))


def _sentence(names: Sequence[str], language: Language) -> str:
    said, conjunction = language.talked_about, language.conjunction
    listed = f"{', '.join(names[:-1])} {conjunction} {names[-1]}" if len(names) > 1 else "".join(names)
    return said.format(listed)


def _bare(name: str) -> str:
    return _POSSESSIVE.sub("", name)
