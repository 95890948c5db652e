"""What Discord makes of a line of a message: the text that it shows, and what it reads as more than text.

The rules are those of the parser in Discord's apps (simple-markdown, with Discord's own rules), for one line. Some of
theirs ask for more around a sign, a boundary of a word for example; these here apply in more places.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# At the beginning of a line, and of what is in a quote or an item of a list.
_BLOCKS = {
    "heading": re.compile(r" *#{1,3} +(?=\S)"),
    "small text": re.compile(r" *-# +(?=\S)"),
    "quote": re.compile(r" *>(?:>>)? +"),
    "item": re.compile(r" *(?:[-*+]|\d+\.) +(?=\S)"),
}
_ESCAPE = re.compile(r"\\([^0-9A-Za-z\s])")
# Anywhere, shown as something else than what is written.
_WHOLES = {
    "code": re.compile(r"(`+)(?:[^`].*?|)(?<!`)\1(?!`)|```"),
    "masked link": re.compile(r"\[[^\]]*\]\([^)]*\)"),
    "link": re.compile(r"<[^: >]+:/[^ >]+>|(?:https?|steam)://[^\s<]+"),
    "mention": re.compile(r"<(?:@[!&]?|#)\d+>|</[^>]+:\d+>|<id:\w+>"),
    "timestamp": re.compile(r"<t:-?\d+(?::\w)?>"),
    "emoji": re.compile(r"<a?:\w+:\d+>|:[\w+-]+:"),
}
# Around what is read in turn. A backslash before the closing sign makes it none.
_AROUND = {
    name: re.compile(rf"{sign}((?:\\.|[^\\])+?){sign}")
    for name, sign in {
        "bold": r"\*\*",
        "underlined": "__",
        "struck": "~~",
        "spoiler": r"\|\|",
        "italic": r"\*",
        "italic by _": "_",
    }.items()
}
# Discord's servers look for these in what is sent, whatever is before them.
_PINGS = re.compile(r"@everyone|@here|<@[!&]?\d+>")
# Discord's apps look for these in what was sent, also without a scheme, and show a card below the message.
_CARDS = re.compile(
    r"discord\.(?:gg|gift|new)/[\w-]|discord(?:app)?\.com/(?:invite|gifts|template)/[\w-]", re.IGNORECASE
)


class Shown(NamedTuple):
    """The `text` that people read, and the names of the rules that apply, in their order."""

    text: str
    rules: tuple[str, ...]


def shown(source: str) -> Shown:
    """Return what people read of a line."""
    around = [name for name, rule in (("ping", _PINGS), ("card", _CARDS)) if rule.search(source)]
    text, rules = _line(source)
    return Shown(text.replace("\u200b", ""), (*around, *rules))


def _line(source: str) -> Shown:
    for name, rule in _BLOCKS.items():
        if found := rule.match(source):
            text, rules = _line(source[found.end() :])
            return Shown(text, (name, *rules))
    return _inline(source)


def _inline(source: str) -> Shown:
    text: list[str] = []
    rules: list[str] = []
    at = 0
    while at < len(source):
        if found := _ESCAPE.match(source, at):
            text.append(found[1])
            at = found.end()
            continue
        name, end, inner = _rule_at(source, at)
        if name:
            read = _inline(inner)
            text.append(read.text)
            rules += (name, *read.rules)
        else:
            text.append(source[at])
        at = end
    return Shown("".join(text), tuple(rules))


def _rule_at(source: str, at: int) -> tuple[str, int, str]:
    """Return the name of the rule that applies at a place, where it ends, and what of it is read in turn."""
    for name, rule in _WHOLES.items():
        if found := rule.match(source, at):
            return name, found.end(), ""
    for name, rule in _AROUND.items():
        if found := rule.match(source, at):
            return name, found.end(), found[1]
    return "", at + 1, ""
