"""Finds names in spoken words, misheard ones included, with a bound on the work. Pure.

A recogniser writes an unusual name as it sounds: 'Roomtone' becomes 'room tone', 'Rumtone' or 'Rome tone'. So names are
compared by their phonemes. Ordinary words that only sound like the name together ('we roamed on', 'room ten is free')
count only in the position of a call: separated from the rest of the sentence.

Names are what people chose to call themselves, and up to 99 of them are present. So each name is prepared once, all
are searched for at the same time, and the constants below bound what one text can cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

from bot.brain.phonetic_search import LONGEST, find_near
from bot.brain.phonetics import phonemes_of
from bot.brain.spoken_words import SpokenWords
from compaction.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

GREETINGS = frozenset(
    {
        "hey", "hi", "hello", "ok", "okay", "so", "and", "but", "well", "oh", "yo", "hallo", "please", "hola", "oye",
        "salut", "bonjour", "dis", "ciao", "olá", "oi", "hé", "hej", "mal", "эй", "привет", "слушай", "ねえ", "ねぇ",
        "おい", "嘿", "喂", "你好",
    }
)  # fmt: skip
# Words after a call where the recogniser wrote no comma.
_AFTER_CALL = frozenset(
    {
        "what", "who", "where", "when", "why", "how", "which", "whose", "can", "could", "would", "will", "do", "does",
        "did", "are", "you", "tell", "please", "say", "remind", "explain", "give", "stop", "shut", "be", "what's",
        "who's", "where's", "how's", "is",
    }
)  # fmt: skip
# No name follows these: 'the room tone' is the sound of a room.
_DETERMINERS = frozenset(
    {
        "a", "an", "the", "this", "that", "these", "those", "some", "any", "no", "each", "every", "my", "your", "our",
        "his", "her", "its", "their", "more", "of", "in", "one",
    }
)  # fmt: skip
# 'Room two' and 'room ten' are rooms.
_NUMBERS = frozenset({"one", "two", "to", "too", "ten", "twelve"})
# A recogniser writes a name as at most this many words.
MOST_WORDS = 3
# Shorter names ('Ada', 'Otto') have too few phonemes to tell a misheard name from another word.
FEWEST_PHONEMES = 5
# Distance allowed for each phoneme of the name. For a whole name that is half a vowel, or a little more than a similar
# consonant. In the position of a call ('room time, …') one different vowel more is allowed.
MOST_DISTANCE = 0.11
MOST_DISTANCE_IN_CALL = 0.16
# What one text may cost. Compared by sound: different words (half a minute of talk has 60), stretches of several words,
# and names that have a word in common with the text. Compared by letters: stretches. Looked at: places of names.
MOST_HEARD = 64
MOST_JOINED = 32
MOST_NAMES = 32
MOST_WRITTEN = 192
MOST_PLACES = 48
# Letters by which a word is taken for the beginning of a name.
_BEGINNINGS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class SpokenName:
    """A prepared name: joined to one word, its phonemes, and the number of words in its spelling."""

    joined: str
    phonemes: str
    words: int


class NamePosition(NamedTuple):
    """Where a name stands: the indexes of its first and last word."""

    first: int
    last: int


class _Stretch(NamedTuple):
    """What may be a name: its phonemes, and the indexes where it is in the position of a call.

    Either a bare word, wherever it stands, or several words at one `place`.
    """

    sound: str
    word: str
    in_call: Set[int]
    place: NamePosition | None = None


class CallEdges(NamedTuple):
    """Where a call may begin, and where one may end, for each word: a place that has neither is a mere mention."""

    begins: Sequence[bool]
    ends: Sequence[bool]


@dataclass(frozen=True, slots=True)
class FoundNames:
    """The places of each name, in order. If several begin at a word, the shortest counts.

    `compared`: how many pairs were compared by sound. `left_out`: how many comparisons and places the bounds left out.
    """

    places: tuple[tuple[NamePosition, ...], ...]
    compared: int = 0
    left_out: int = 0


def prepare(name: str) -> SpokenName | None:
    """Return a name as it is searched for, or None if it has no words."""
    bare = SpokenWords(name).bare
    return SpokenName("".join(bare), "".join(phonemes_of(bare)), len(bare)) if bare else None


def find_each(
    words: SpokenWords,
    names: Sequence[SpokenName],
    *,
    most_words: int = MOST_WORDS,
    within: CallEdges | None = None,
) -> FoundNames:
    """Find the places of each of `names`. `most_words`: a name is written as at most so many words, or as many as its
    own spelling has. `within`: only places that begin or end where a call may are looked for, which are few.
    """
    search = _Search(words, names, most_words, within)
    search.find_written()
    search.find_sounding()
    nowhere: tuple[NamePosition, ...] = ()
    places = tuple(shortest(found) if found else nowhere for found in search.found)
    return FoundNames(places, search.compared, search.left_out)


def shortest(places: Iterable[NamePosition]) -> tuple[NamePosition, ...]:
    """Return the places in order, and of those that begin at the same word the shortest."""
    by_first: dict[int, NamePosition] = {}
    for place in sorted(places):
        by_first.setdefault(place.first, place)
    return tuple(by_first.values())


class _Search:
    """One search. `found`: the places of each name."""

    def __init__(
        self, words: SpokenWords, names: Sequence[SpokenName], most_words: int, within: CallEdges | None
    ) -> None:
        self._words = words
        self._names = names
        self._within = within
        self._most = [max(most_words, name.words) for name in names]
        self.found: list[set[NamePosition]] = [set() for _ in names]
        self.compared = 0
        self.left_out = 0
        self._places = 0
        self._looked_at = 0

    def find_written(self) -> None:
        """Find the names that are written as they are, in however many words; with an s for a possessive too."""
        words, bare, joined, within = self._words, self._words.bare, "".join(self._words.bare), self._within
        numbers: dict[str, list[int]] = {}
        for number, name in enumerate(self._names):
            numbers.setdefault(name.joined, []).append(number)
        # What a word may begin with, or be. The longer, the fewer words are looked at.
        begins = {written[:length] for written in numbers for length in _BEGINNINGS}
        begins |= {f"{written}s" for written in numbers if len(written) < _BEGINNINGS[-1]}
        most, longest = max(self._most, default=0), max(map(len, numbers), default=0)
        ends = list(accumulate(map(len, bare)))
        nearest = _nearest_ends(within) if within is not None else range(len(bare))
        for first, word in enumerate(bare):
            if word[: _BEGINNINGS[-1]] not in begins or nearest[first] >= first + most:
                continue
            begin = ends[first] - len(word)
            for last in range(first, min(first + most, len(words))):
                if ends[last] - begin > longest + 1:
                    break
                if within is not None and not (within.begins[first] or within.ends[last]):
                    continue
                if not self._looks():
                    return
                written = joined[begin : ends[last]]
                if written in numbers:
                    self._add_written(numbers[written], NamePosition(first, last))
                # A possessive without its apostrophe.
                if last == first and written[-1] == "s" and not self._determined(first):
                    for number in numbers.get(written[:-1], ()):
                        self._add(number, NamePosition(first, first))

    def _add_written(self, numbers: Iterable[int], place: NamePosition) -> None:
        for number in numbers:
            if place.last - place.first < self._most[number] and self._is_together(place.first, place.last):
                self._add(number, place)

    def find_sounding(self) -> None:
        """Find the names that were misheard."""
        numbers = [
            number for number, name in enumerate(self._names) if FEWEST_PHONEMES <= len(name.phonemes) <= LONGEST
        ]
        if not numbers:
            return
        self.left_out += max(0, len(numbers) - MOST_NAMES)
        numbers, words = numbers[:MOST_NAMES], self._words
        single, left_out = _single(words, self._within)
        several, more_left_out = _several(words, max(self._most[number] for number in numbers))
        heard = [*single, *several]
        shares = [MOST_DISTANCE_IN_CALL if each.in_call else MOST_DISTANCE for each in heard]
        near = find_near([each.sound for each in heard], shares, [self._names[number].phonemes for number in numbers])
        self.compared += near.compared
        self.left_out += near.left_out + left_out + more_left_out
        near_words = {heard[of_heard].word for of_heard, _, _ in near.pairs}
        positions: dict[str, list[int]] = {}
        within = self._within
        for at, word in enumerate(words.bare):
            if word in near_words and (within is None or within.begins[at] or within.ends[at]):
                positions.setdefault(word, []).append(at)
        for of_heard, of_name, distance in near.pairs:
            number, stretch = numbers[of_name], heard[of_heard]
            share = distance / len(self._names[number].phonemes)
            if stretch.place is not None:
                if share <= MOST_DISTANCE_IN_CALL and stretch.place.last - stretch.place.first < self._most[number]:
                    self._add(number, stretch.place)
                continue
            for at in positions.get(stretch.word, ()):
                if not self._looks():
                    return
                in_call = at in stretch.in_call
                if share <= (MOST_DISTANCE_IN_CALL if in_call else MOST_DISTANCE) and not self._determined(at):
                    self._add(number, NamePosition(at, at))

    def _is_together(self, first: int, last: int) -> bool:
        """Return whether these words can be one name: not 'the room tone', not 'room's tone'."""
        if first == last:
            return True
        return not self._determined(first) and not any("'" in word for word in self._words.texts[first:last])

    def _determined(self, at: int) -> bool:
        words = self._words
        return at > 0 and words.texts[at - 1] in _DETERMINERS and not words.pauses[at - 1]

    def _looks(self) -> bool:
        """Count an occurrence that is looked at. Returns whether the bound allows it."""
        self._looked_at += 1
        self.left_out += self._looked_at > MOST_WRITTEN
        return self._looked_at <= MOST_WRITTEN

    def _add(self, number: int, place: NamePosition) -> None:
        if place in self.found[number]:
            return
        if self._places < MOST_PLACES:
            self._places += 1
            self.found[number].add(place)
        else:
            self.left_out += 1


def _nearest_ends(edges: CallEdges) -> list[int]:
    """Return for each word the nearest one from it on at which what begins there may end."""
    nearest, found = [], len(edges.ends)
    for at in range(len(edges.ends) - 1, -1, -1):
        if edges.ends[at]:
            found = at
        nearest.append(at if edges.begins[at] else found)
    nearest.reverse()
    return nearest


def _single(words: SpokenWords, within: CallEdges | None) -> tuple[list[_Stretch], int]:
    """Return the words that may be a name, those in the position of a call first, and how many the bound left out."""
    begins, ends = call_edges(words, GREETINGS, _AFTER_CALL)
    bare = words.bare
    in_call = [at for at, text in enumerate(words.texts) if begins[at] and ends[at] and text not in _NUMBERS]
    called = dict.fromkeys([bare[at] for at in in_call])
    elsewhere = bare
    if within is not None:
        elsewhere = [word for word, begin, end in zip(bare, *within, strict=True) if begin or end]
    different = [*called, *(word for word in dict.fromkeys(elsewhere) if word not in called)]
    kept = different[:MOST_HEARD]
    places: dict[str, set[int]] = {word: set() for word in kept}
    for at in in_call:
        if (found := places.get(bare[at])) is not None:
            found.add(at)
    stretches = [
        _Stretch(sound, word, places[word])
        for word, sound in zip(kept, _sounds_of(words, kept), strict=True)
        if 0 < len(sound) <= LONGEST
    ]
    return stretches, len(different) - len(kept)


def _several(words: SpokenWords, most: int) -> tuple[list[_Stretch], int]:
    """Return the stretches of up to `most` words in the position of a call, and whether the bound left any out."""
    places = _long_calls(words, most)
    kept = list(islice(places, MOST_JOINED))
    left_out = next(places, None) is not None
    spelled = list(dict.fromkeys(word for place in kept for word in words.bare[place.first : place.last + 1]))
    sounds = dict(zip(spelled, _sounds_of(words, spelled), strict=True))
    stretches = []
    for place in kept:
        sound = "".join([sounds[word] for word in words.bare[place.first : place.last + 1]])
        if 0 < len(sound) <= LONGEST:
            stretches.append(_Stretch(sound, "", frozenset((place.first,)), place))
    return stretches, int(left_out)


def _sounds_of(words: SpokenWords, spelled: Sequence[str]) -> list[str]:
    """Return the phonemes of some of a text's words, which are searched for the bot's names and for other people's."""
    new = [word for word in spelled if word not in words.sounds]
    words.sounds.update(zip(new, phonemes_of(new), strict=True))
    return [words.sounds[word] for word in spelled]


def _long_calls(words: SpokenWords, most: int) -> Iterator[NamePosition]:
    """Yield the stretches of two words and more that stand as a call does, between pauses or their like."""
    texts, pauses = words.texts, words.pauses
    begins, ends = call_edges(words, GREETINGS, _AFTER_CALL)
    for first, may_begin in enumerate(begins):
        # A name is not called across a pause.
        if not may_begin or pauses[first]:
            continue
        for last in range(first, min(first + most, len(words))):
            if texts[last] in _NUMBERS:
                break
            if ends[last] and last > first:
                yield NamePosition(first, last)
            if pauses[last] or "'" in texts[last]:
                break  # 'the room's tone'


@sentence_cache(most=8)
def call_edges(words: SpokenWords, before: frozenset[str], after: frozenset[str]) -> CallEdges:
    """Return where a call may begin, after a pause or one of `before`, and end: before a pause or one of `after`."""
    texts, pauses = words.texts, words.pauses
    begins = [pause or text in before for text, pause in zip(texts, pauses, strict=True)]
    ends = [pause or text in after for text, pause in zip(texts[1:], pauses, strict=False)]
    return CallEdges([True, *begins][: len(texts)], [*ends, True][: len(texts)])
