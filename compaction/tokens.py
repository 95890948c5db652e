"""Estimates how many tokens a text costs. The estimate is rather too high than too low.

`chars / 4` counts too few: 9 % too few for spoken English (25 % at worst), 2.8 times too few for JSON, 2.6 times for
Chinese, and 4 times for emoji and ids. In this estimate ASCII letters cost a third of a token each, digits and
punctuation cost one each, and every other character costs as many tokens as it has UTF-8 bytes. Byte-level tokenisers
can't exceed that number. Letters that don't form words (base64, constants, keys) cost more. Measurements:
docs/budget.md.

If the model's own tokeniser is installed, `budget.estimator` uses that tokeniser instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# What the chat templates of OpenAI and Qwen add to each message (role, separators), rounded up.
MESSAGE_OVERHEAD_TOKENS = 6
# What is added around one tool call: type, function, braces and quotes.
TOOL_CALL_OVERHEAD_TOKENS = 12

_LETTERS = re.compile(r"[A-Za-z]+")
_ASCII_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_DIGIT = re.compile(r"[0-9]")
# Vocabularies include the space before a word in the word's token, but not the space before digits.
_SPACE_BEFORE_DIGIT = re.compile(r"(?<![ \t\n\r\f\v]) (?=[0-9])")
# Letters next to a digit are usually part of an id and rarely of a word.
_BY_DIGITS = re.compile(r"(?<![A-Za-z])[A-Za-z]+(?=[0-9])|(?<=[0-9])[A-Za-z]+")
_CAPITALS = re.compile(r"[A-Z]{2,}")
_CAMEL = re.compile(r"[a-z][A-Z]")
# Four consonants in a row are rare in words and common in random letters.
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{4,}")
_LONG = re.compile(r"[A-Za-z]{8,}")
# A run with at least this many letters is a compound or not a word. Half a token more per letter covers both cases.
_NO_WORD_LETTERS = 16


class HasContent(Protocol):
    """A message for a chat model. It may also have `tool_calls` and a `tool_call_id`."""

    @property
    def role(self) -> str:
        """Return `system`, `user`, `assistant` or `tool`."""

    @property
    def content(self) -> str:
        """Return the text."""


class Tokenizer(Protocol):
    """Counts tokens in the way of one family of models. Accepts any text, never raises, and may be called from any
    thread.
    """

    def count(self, text: str) -> int:
        """Return the token count of `text`, without what a chat template adds."""


def estimate_text_tokens(text: str) -> int:
    """Return the estimated token count of one text. It is never more than the number of UTF-8 bytes.

    Letters cost a third of a token each, a run of letters costs at least one token, and letters that don't form a word
    cost more. The space before a word is free. All other white space, and a space before digits, costs one token per
    character.
    """
    runs = _LETTERS.findall(text)
    letters = sum(map(len, runs))
    spaces = _ASCII_SPACE.findall(text)
    blank = sum(map(len, spaces))
    single = spaces.count(" ")
    size = len(text.encode("utf-8", "surrogatepass"))
    # All other characters cost one token per UTF-8 byte, which is one token each for ASCII.
    others = size - letters - blank
    words = max(-(-letters // 3), len(runs)) + _strangeness(text)
    return min(size, words + (blank - single) + others)


def _strangeness(text: str) -> int:
    """Return the additional cost of letters that don't form words, beyond a third of a token each."""
    extra = 0
    if _DIGIT.search(text):
        extra += sum(map(len, _BY_DIGITS.findall(text))) + len(_SPACE_BEFORE_DIGIT.findall(text))
    if not text.islower():
        extra += sum(map(len, _CAPITALS.findall(text))) // 2 + len(_CAMEL.findall(text))
    extra += sum(len(run) - 2 for run in _CONSONANTS.findall(text.lower()))
    for run in _LONG.findall(text):
        extra += 1 if len(run) < _NO_WORD_LETTERS else (len(run) + 1) // 2
    return extra


def estimate_tokens(messages: Iterable[HasContent], count: Callable[[str], int] = estimate_text_tokens) -> int:
    """Return how many tokens these messages cost, with their tool calls and the overhead of each. `count`: counts the
    tokens of a text, as the model's own tokeniser does. Deterministic.
    """
    return sum(message_tokens(message, count) for message in messages)


def message_tokens(message: HasContent, count: Callable[[str], int]) -> int:
    """Return what one message costs. `count`: counts the tokens of a text."""
    calls = len(getattr(message, "tool_calls", ()))
    return MESSAGE_OVERHEAD_TOKENS + calls * TOOL_CALL_OVERHEAD_TOKENS + sum(map(count, _texts(message)))


def _texts(message: HasContent) -> Iterator[str]:
    """Yield everything in a message that is sent as text."""
    yield message.content
    for call in getattr(message, "tool_calls", ()):
        yield call.id
        yield call.name
        yield call.arguments
    answers: str | None = getattr(message, "tool_call_id", None)
    if answers:
        yield answers
