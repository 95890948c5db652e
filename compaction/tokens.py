"""How many tokens a text costs, guessed so that the guess is not too low.

`chars / 4` under-counts: spoken English by 9 % (worst 25 %), JSON 2.8 times, Chinese 2.6 times, emoji and ids 4
times. Here ASCII letters cost a third each, digits and punctuation one each, and every other character as many
tokens as it has UTF-8 bytes, which byte-level tokenisers can't exceed. That still under-counts letters that make no
words (base64, names of constants, keys), so those cost more. What it was held against: docs/budget.md.

Where the model's own tokeniser is at hand (`estimator`), that counts instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Role, separators and the like, for each message: what OpenAI's and Qwen's chat templates add, rounded up.
MESSAGE_OVERHEAD_TOKENS = 6
# The frame around one call of a tool: type, function, braces and quotes.
TOOL_CALL_OVERHEAD_TOKENS = 12

_LETTERS = re.compile(r"[A-Za-z]+")
_ASCII_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_DIGIT = re.compile(r"[0-9]")
# A space that no word takes along: vocabularies keep digits apart from what is before them.
_SPACE_BEFORE_DIGIT = re.compile(r"(?<![ \t\n\r\f\v]) (?=[0-9])")
# Letters that stand by a digit: parts of an id, rarely of a word.
_BY_DIGITS = re.compile(r"[A-Za-z]+(?=[0-9])|(?<=[0-9])[A-Za-z]+")
_CAPITALS = re.compile(r"[A-Z]{2,}")
_CAMEL = re.compile(r"[a-z][A-Z]")
# Four consonants in a row are rare in words, and common where letters come by chance.
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{4,}")
_LONG = re.compile(r"[A-Za-z]{8,}")
# From here on a run of letters is a compound or no word at all; half a token more a letter covers both.
_NO_WORD_LETTERS = 16


class HasContent(Protocol):
    """What goes to a chat model: who speaks, and what. It may also have `tool_calls` and a `tool_call_id`."""

    @property
    def role(self) -> str:
        """Return `system`, `user`, `assistant` or `tool`."""

    @property
    def content(self) -> str:
        """Return the text."""


class Tokenizer(Protocol):
    """Counts as one family of models does. Reads any text, raises nothing, may be called from any thread."""

    def count(self, text: str) -> int:
        """Return how many tokens `text` is, without what a chat template adds."""


class Tokenizers(Protocol):
    """The tokenisers at hand."""

    def for_model(self, model: str) -> Tokenizer | None:
        """Return the tokeniser of the model of that name; None where there is none, and the guess serves."""


def estimate_text_tokens(text: str) -> int:
    """Return the guess for one text.

    Letters cost a third of a token, but a run of them no less than one, and more where they make no words; the
    space before a word belongs to it, and any further white space, like a space before digits, costs one a
    character. Never more than the text's UTF-8 bytes.
    """
    runs = _LETTERS.findall(text)
    letters = sum(map(len, runs))
    spaces = _ASCII_SPACE.findall(text)
    blank = sum(map(len, spaces))
    single = spaces.count(" ")
    size = len(text.encode("utf-8", "surrogatepass"))
    # Everything else: one token each in ASCII, one for each byte elsewhere; that is their length in UTF-8.
    others = size - letters - blank
    words = max(-(-letters // 3), len(runs)) + _strangeness(text)
    return min(size, words + (blank - single) + others)


def _strangeness(text: str) -> int:
    """Return what a text costs beyond a third of a token a letter, because tokenisers know words and this is none."""
    extra = 0
    if _DIGIT.search(text):
        extra += sum(map(len, _BY_DIGITS.findall(text))) + len(_SPACE_BEFORE_DIGIT.findall(text))
    if not text.islower():
        extra += sum(map(len, _CAPITALS.findall(text))) // 2 + len(_CAMEL.findall(text))
    extra += sum(len(run) - 2 for run in _CONSONANTS.findall(text.lower()))
    for run in _LONG.findall(text):
        extra += 1 if len(run) < _NO_WORD_LETTERS else (len(run) + 1) // 2
    return extra


def estimate_tokens(messages: Iterable[HasContent], model: str = "", *, tokenizers: Tokenizers | None = None) -> int:
    """Return how many tokens these messages cost `model`, overhead of each message and tool call included.

    Counted by the model's own tokeniser where `tokenizers` has it, else guessed, not too low. Deterministic.
    """
    own = tokenizers.for_model(model) if tokenizers is not None else None
    count = estimate_text_tokens if own is None else own.count
    return sum(message_tokens(message, count) for message in messages)


def message_tokens(message: HasContent, count: Callable[[str], int] = estimate_text_tokens) -> int:
    """Return what one message costs: its text by `count`, its tool calls, and its frame."""
    calls = len(getattr(message, "tool_calls", ()))
    frame = MESSAGE_OVERHEAD_TOKENS + calls * TOOL_CALL_OVERHEAD_TOKENS
    return frame + sum(map(count, _texts(message)))


def _texts(message: HasContent) -> Iterator[str]:
    """Yield everything of a message that is sent as text."""
    yield message.content
    for call in getattr(message, "tool_calls", ()):
        yield call.id
        yield call.name
        yield call.arguments
    answers: str | None = getattr(message, "tool_call_id", None)
    if answers:
        yield answers
