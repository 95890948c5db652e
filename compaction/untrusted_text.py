"""Marks text that came from people, screens, files, tools or names as data, before a model reads it. Pure.

All of it goes to a model through `mark_as_data` (a block with its own marks) or `inline` (one line within a block or a
turn), so that none of it looks like our own instructions. That alone does not stop prompt injection:
`bot.brain.tools.tool` decides what a tool may do.
"""

from __future__ import annotations

import re

# The beginning of a tag or of a chat-template token, which some servers obey anywhere in a prompt: `</data>`,
# `<tool_call>`, `<|im_start|>`, `<<SYS>>`, `[INST]`, `[TOOL_CALLS]`. Some tokenisers take the wide forms for the ASCII
# ones. Its first character is replaced, not removed: removing it could join the text around it to another tag.
_MARKUP_START = re.compile(
    r"[<＜﹤](?=/?[^\W\d_]|\s*[/|｜]|\s+(?:data|system|assistant|user|developer|tool|function)(?:\b|_))"
    r"|[\[［](?=\s*/?(?:inst|(?-i:SYS|ARGS|THINK|[A-Z]+_[A-Z_]+))\s*[\]］])",
    re.IGNORECASE,
)
# Characters that show nothing and are not among Unicode's format characters: fillers, variation selectors and blanks.
_BLANKS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
# Format characters that spell words in some scripts: zero width non-joiner and joiner.
_JOINERS = "\u200c\u200d"
# Arabic to N'Ko, Devanagari to Sinhala, Myanmar, Khmer and Mongolian.
_JOINING_SCRIPTS = "\u0620-\u07ff\u08a0-\u0dff\u1000-\u109f\u1780-\u18af"
_STRAY_JOINER = re.compile(f"(?<![{_JOINING_SCRIPTS}])[{_JOINERS}]|[{_JOINERS}](?![{_JOINING_SCRIPTS}])")
# How lines of turns and quotes begin in a prompt: `[21:04]`.
_TURN_START = re.compile(r"\[(?=\s*\d{1,2}:\d{2}\s*\])")
_SOURCE = re.compile(r"[^\w .:/-]+")
_MAX_SOURCE_CHARS = 80
_MARKED = re.compile(r'<data from="[^"\n]*">\n(?P<text>.*)\n</data>', re.DOTALL)
_MARK = re.compile(r'</?data(?: from="[^"\n]*")?>')


def mark_as_data(source: str, text: str, *, max_chars: int | None = None) -> str:
    """Return `text` between `<data>` marks that name its `source`, such as `summary`. May have several lines.

    `max_chars`: a longer text is cut, and a note says how much is left out.
    """
    left_out = 0
    if max_chars is None:
        clean = defuse(text)
    else:
        # Only the beginning of a huge text is cleaned, because cleaning blocks the event loop.
        scanned = 2 * max_chars
        clean = defuse(text[:scanned])
        left_out = max(0, len(clean) - max_chars) + max(0, len(text) - scanned)
    if left_out:
        clean = f"{clean[:max_chars]}\n[… {left_out} more characters left out]"
    return f'<data from="{_SOURCE.sub(" ", visible(source))[:_MAX_SOURCE_CHARS].strip()}">\n{clean}\n</data>'


def without_marks(text: str) -> str:
    """Return what stands between the marks of `mark_as_data`, or `text` itself if it has none."""
    marked = _MARKED.fullmatch(text)
    return text if marked is None else marked["text"]


def without_copied_marks(text: str) -> str:
    """Return a model's answer without the marks of `mark_as_data`, which small models copy. What they mark stays."""
    return _MARK.sub("", text)


def defuse(text: str) -> str:
    """Return `text` with tags and chat-template tokens broken, and without invisible characters."""
    return _MARKUP_START.sub("‹", visible(text))


def inline(text: str) -> str:
    """Return `text` defused and on one line, in which it can't look like the beginning of another turn."""
    return _TURN_START.sub("‹", " ".join(defuse(text).split()))


def visible(text: str) -> str:
    """Return `text` without control, format, private use and unassigned characters, and with plain spaces.

    Line feeds and tabs stay, and so do joiners inside a word of a script that is spelt with them.
    """
    # Line feeds are looked past, because reading each character of a summary would take most of a payload's time.
    if not text.replace("\n", "").isprintable():
        text = "".join(map(_printable, text.replace("\r\n", "\n")))
    return text if text.isascii() else _STRAY_JOINER.sub("", _BLANKS.sub("", text))


def _printable(char: str) -> str:
    if char.isprintable() or char in "\n\t" or char in _JOINERS:
        return char
    return " " if char.isspace() else ""
