"""Compares many heard phoneme strings with many names at once, with a bound on the work. Pure.

Most pairs have too few phonemes in common to be near, which is seen from how often each kind of phoneme occurs: one
addition of arrays for all pairs. Only the others are compared phoneme by phoneme, all of them together, and at most
`MOST_COMPARED` of them. Costs are whole numbers in units of a twentieth, so the order of additions changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bot.brain.phonetics import cost_of_adding, cost_of_confusing, cost_of_losing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

# Comparisons of one text phoneme by phoneme. 25 people whose names are four ordinary words leave 15 for 110 words.
MOST_COMPARED = 32
# Longer strings are no name: a name of Discord has 32 characters, and an x is two phonemes.
LONGEST = 64
# Costs are multiples of 0.05.
_UNITS = 20
# Kinds of phonemes, each with a weight in tenths. The weights of two phonemes of different kinds add up to at most the
# cost of confusing them, and none exceeds the cost of adding or losing the phoneme: so the sum of the differences in
# weight is at most the distance. A test compares this with the table of costs.
KINDS = (
    ("AEIOU", 3), ("mnN", 6), ("szSJ", 2), ("fvT", 2), ("kg", 4), ("pb", 2), ("td", 2), ("r", 2), ("l", 3), ("w", 2),
    ("h", 2), ("y", 3),
)  # fmt: skip
# Most weight of one kind that counts, so that the sum of all fits into a byte.
_MOST_WEIGHT = 255 // len(KINDS)
_PHONEMES = "".join(phonemes for phonemes, _ in KINDS)
# Pairs that cannot be near any more are looked for only so often, because that costs as much as going on.
_ROWS_A_CHECK = 4
_CODES = 128  # of ASCII letters; 0 fills what is shorter


def _table(costs: Mapping[str, float]) -> NDArray[np.int16]:
    """Return the costs by the phonemes' codes."""
    table = np.zeros(_CODES, np.int16)
    for phoneme, cost in costs.items():
        table[ord(phoneme)] = round(cost * _UNITS)
    return table


_KIND = np.zeros(_CODES, np.intp)
_WEIGHT = np.zeros(_CODES, np.intp)
for _number, (_phonemes, _weight) in enumerate(KINDS):
    for _phoneme in _phonemes:
        _KIND[ord(_phoneme)], _WEIGHT[ord(_phoneme)] = _number, _weight
_ADDED = _table({each: cost_of_adding(each) for each in _PHONEMES})
_LOST = _table({each: cost_of_losing(each) for each in _PHONEMES})
_CONFUSED = np.zeros((_CODES, _CODES), np.int16)
for _phoneme in _PHONEMES:
    _CONFUSED[ord(_phoneme)] = _table({each: cost_of_confusing(_phoneme, each) for each in _PHONEMES})


@dataclass(frozen=True, slots=True)
class NearPairs:
    """The pairs that are near enough: index of the heard string, index of the name, and the distance in phonemes.

    `compared`: how many pairs were compared phoneme by phoneme. `left_out`: how many the bound left out.
    """

    pairs: tuple[tuple[int, int, float], ...]
    compared: int
    left_out: int


def find_near(heard: Sequence[str], shares: Sequence[float], meant: Sequence[str]) -> NearPairs:
    """Return which of `heard` are near which of `meant`. Both are phoneme strings of at most `LONGEST`.

    `shares`: for each heard string, the distance allowed for each phoneme of a name. If more pairs than
    `MOST_COMPARED` have to be compared, those that have most phonemes in common are.
    """
    if not heard or not meant:
        return NearPairs((), 0, 0)
    lengths = np.array([len(name) for name in meant], np.float32)
    # A pair exactly at the limit counts as near. The caller decides on those.
    limits = np.floor(np.outer(np.array(shares, np.float32) * _UNITS, lengths) + 0.001).astype(np.int16)
    least = _least_distances(_weights(heard), _weights(meant))
    at_heard, at_meant = np.nonzero(least <= limits >> 1)
    # What sounds the same needs no comparison.
    numbers = {sound: number for number, sound in enumerate(dict.fromkeys((*heard, *meant)))}
    heard_numbers = np.array([numbers[sound] for sound in heard])
    same = heard_numbers[at_heard] == np.array([numbers[sound] for sound in meant])[at_meant]
    pairs = [(int(at_heard[at]), int(at_meant[at]), 0.0) for at in np.nonzero(same)[0]]
    at_heard, at_meant = at_heard[~same], at_meant[~same]
    left_out = max(0, len(at_heard) - MOST_COMPARED)
    if left_out:
        # Bytes are sorted in one pass.
        share = least[at_heard, at_meant] * np.uint16(127) // limits[at_heard, at_meant]
        best = np.sort(np.argsort(share.astype(np.uint8), kind="stable")[:MOST_COMPARED])
        at_heard, at_meant = at_heard[best], at_meant[best]
    of_pairs = limits[at_heard, at_meant]
    distances = _distances(_codes(heard), _codes(meant), at_heard, at_meant, of_pairs)
    near = np.nonzero(distances <= of_pairs)[0]
    pairs += [(int(at_heard[at]), int(at_meant[at]), int(distances[at]) / _UNITS) for at in near]
    return NearPairs(tuple(pairs), len(at_heard), left_out)


def _weights(strings: Sequence[str]) -> NDArray[np.uint8]:
    """Return the weight of each kind of phoneme in each string, in tenths, shape (kinds, strings)."""
    sounds = np.frombuffer("".join(strings).encode("ascii"), np.uint8)
    place = np.repeat(np.arange(len(strings)), [len(string) for string in strings])
    sums = np.bincount(place * len(KINDS) + _KIND[sounds], _WEIGHT[sounds], minlength=len(strings) * len(KINDS))
    weights: NDArray[np.uint8] = np.minimum(sums, _MOST_WEIGHT).astype(np.uint8).reshape(-1, len(KINDS)).T.copy()
    return weights


def _least_distances(heard: NDArray[np.uint8], meant: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a lower bound of the distance of each pair in tenths, shape (heard, meant)."""
    of_heard, of_meant = heard[:, :, None], meant[:, None, :]
    least: NDArray[np.uint8] = (np.maximum(of_heard, of_meant) - np.minimum(of_heard, of_meant)).sum(0, np.uint8)
    return least


def _codes(strings: Sequence[str]) -> NDArray[np.uint8]:
    """Return the phonemes as a matrix, shape (strings, longest), filled with zeros."""
    longest = max(len(string) for string in strings)
    joined = "".join(string.ljust(longest, "\0") for string in strings).encode("ascii")
    return np.frombuffer(joined, np.uint8).reshape(len(strings), longest)


def _distances(
    heard: NDArray[np.uint8],
    meant: NDArray[np.uint8],
    at_heard: NDArray[np.intp],
    at_meant: NDArray[np.intp],
    limits: NDArray[np.int16],
) -> NDArray[np.int16]:
    """Return the weighted edit distance of each pair; where it is over its limit, any number over the limit."""
    found = np.full(len(at_heard), np.iinfo(np.int16).max, np.int16)
    pair = np.arange(len(at_heard))
    # A column for each pair. `lost`: the cost of losing the name up to each place.
    spoken, names = heard[at_heard].T, meant[at_meant].T
    lengths, ends = np.count_nonzero(spoken, axis=0), np.count_nonzero(names, axis=0)
    stops = set(lengths.tolist())
    lost = np.zeros((len(names) + 1, len(pair)), np.int16)
    np.cumsum(_LOST[names], axis=0, out=lost[1:])
    row = lost
    for at in range(len(spoken) + 1):
        if at in stops:
            over = lengths == at
            found[pair[over]] = row[ends, np.arange(len(pair))][over]
        if at in stops or at % _ROWS_A_CHECK == 0:
            # Costs never fall along a way through the table: a row that is over its limit everywhere stays so.
            going = (lengths > at) & (row.min(axis=0) <= limits)
            if not going.any():
                break
            if not going.all():
                pair, lengths, ends, limits = pair[going], lengths[going], ends[going], limits[going]
                spoken, names, lost, row = spoken[:, going], names[:, going], lost[:, going], row[:, going]
        sounds = spoken[at]
        step = row + _ADDED[sounds]
        np.minimum(step[1:], row[:-1] + _CONFUSED[sounds, names], out=step[1:])
        # The cheapest way to each place, also by losing what lies between.
        row = np.minimum.accumulate(step - lost, axis=0) + lost
    return found
