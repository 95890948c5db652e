"""Shortens tool outputs as a conversation goes on, by rules and without a model. Source: spec 5.

An output over 2,000 tokens is cut to its beginning and end. An output older than 5 steps (model calls) is replaced by a
placeholder with tool, size and key facts, unless it holds the content of an active file or frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.budget.files import get_active_files, paths_read
from compaction.budget.messages import is_tool_output, message_steps, next_step
from compaction.payload import recount
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.payload import PayloadPart

MAX_TOOL_OUTPUT_AGE = 5
MAX_TOOL_OUTPUT_TOKENS = 2_000

_PLACEHOLDER = "[Output of "
# The share of a shortened output that is taken from its beginning, which says what it is. The rest is taken from its
# end, which has the result.
_HEAD_SHARE = 0.6
_MOST_PATHS = 5
_MOST_ERRORS = 3
_ERROR_CHARS = 120
# Both patterns are tried only where a row of such characters begins. Otherwise a long line would be read from each.
_PATH = re.compile(
    r"(?<![\w.@~-])(?:[A-Za-z]:\\|\.{0,2}/)?(?:[\w.@~-]+[/\\])+[\w.@~-]+"
    r"|(?<![\w-])[\w-]+\.(?:[A-Za-z]{1,4}\d?|json[l5]?|toml|yaml|html)\b"
)
_TROUBLE = re.compile(
    r"\b(?:errors?|exceptions?|traceback|fail(?:ed|ure|s)?|fatal|denied|refused|not found|timed? ?out)\b", re.I
)
_NO_TROUBLE = re.compile(r"\b(?:0|no|without) (?:errors?|failures?|failed)\b", re.I)
_SUCCESS = re.compile(
    r"\b(?:ok|done|success(?:ful(?:ly)?)?|succeeded|passed|completed?|created|saved|written|found)\b", re.I
)


@dataclass(frozen=True, slots=True)
class ToolOutputOptions:
    """When tool outputs are shortened. Ages are in steps, and sizes in tokens, counted by `count`."""

    max_tool_output_age: int = MAX_TOOL_OUTPUT_AGE
    max_tool_output_tokens: int = MAX_TOOL_OUTPUT_TOKENS
    preserve_recent_files: bool = True
    count: Callable[[str], int] = estimate_text_tokens


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """The key facts of a tool output. `outcome`: success, failure or unknown."""

    tool: str
    outcome: str
    paths: tuple[str, ...]
    errors: tuple[str, ...]
    lines: int
    chars: int


def truncate_old_tool_outputs(
    messages: Sequence[PayloadPart], current_step: int | None = None, options: ToolOutputOptions | None = None
) -> list[PayloadPart]:
    """Return the messages with long tool outputs shortened and old ones replaced. All other messages are unchanged.

    `current_step`: the model call that is being prepared, by default the one after the last. Idempotent and
    deterministic.
    """
    options = options or ToolOutputOptions()
    if not any(is_tool_output(message) for message in messages):
        return list(messages)
    at_step = message_steps(messages)
    now = next_step(messages) if current_step is None else current_step
    active = active_outputs(messages, now, options)
    kept: list[PayloadPart] = []
    for at, message in enumerate(messages):
        if not is_tool_output(message):
            kept.append(message)
        elif at not in active and should_truncate_tool_result(message, now - at_step[at], options):
            kept.append(create_truncated_placeholder(message, options))
        else:
            kept.append(_shortened(message, options))
    return kept


def active_outputs(messages: Sequence[PayloadPart], now: int, options: ToolOutputOptions) -> frozenset[int]:
    """Return the positions of the tool outputs that hold the newest content of a file that is active at step `now`."""
    if not options.preserve_recent_files or not any(map(is_tool_output, messages)):
        return frozenset()
    wanted = {file.path for file in get_active_files(messages, now, max_age=options.max_tool_output_age)}
    found: set[int] = set()
    for at, paths in reversed(list(enumerate(paths_read(messages)))):
        if wanted & paths and not is_placeholder(messages[at]):
            found.add(at)
        wanted -= paths
    return frozenset(found)


def should_truncate_tool_result(message: PayloadPart, age: int, options: ToolOutputOptions | None = None) -> bool:
    """Return whether a tool output of this age (in steps) must be replaced by a placeholder."""
    options = options or ToolOutputOptions()
    return is_tool_output(message) and age > options.max_tool_output_age and not is_placeholder(message)


def is_placeholder(message: PayloadPart) -> bool:
    """Return whether the message is a placeholder for a removed output."""
    return is_tool_output(message) and message.content.startswith(_PLACEHOLDER)


def create_truncated_placeholder(message: PayloadPart, options: ToolOutputOptions | None = None) -> PayloadPart:
    """Return the placeholder of an old output with tool, size and key facts. Returns the output itself if that is
    shorter.
    """
    options = options or ToolOutputOptions()
    size = options.count(message.content)
    tool = message.name or "a tool"
    content = f"{_PLACEHOLDER}{tool}, {size} tokens, left out because it is old. {summarize_tool_output(message)}]"
    return _with_content(message, content, options) if options.count(content) < size else message


def summarize_tool_output(message: PayloadPart) -> str:
    """Return the key facts of an output in one or two sentences: outcome, size, paths and errors."""
    info = extract_key_info(message.content, message.name or "")
    facts = [f"Outcome: {info.outcome}; {info.lines} lines."]
    if info.paths:
        facts.append(f"Paths: {', '.join(info.paths)}.")
    if info.errors:
        facts.append(f"Errors: {'; '.join(info.errors)}.")
    return " ".join(facts)


def extract_key_info(content: str, tool_name: str) -> KeyInfo:
    """Return the paths, the error lines and the outcome that rules find in an output."""
    lines = [" ".join(line.split()) for line in content.splitlines()]
    errors = [line for line in lines if _TROUBLE.search(_NO_TROUBLE.sub("", line))]
    if errors:
        outcome = "failure"
    elif _SUCCESS.search(content) or _NO_TROUBLE.search(content):
        outcome = "success"
    else:
        outcome = "unknown"
    return KeyInfo(
        tool=tool_name,
        outcome=outcome,
        paths=tuple(dict.fromkeys(_PATH.findall(content)))[:_MOST_PATHS],
        errors=tuple(dict.fromkeys(line[:_ERROR_CHARS] for line in errors))[:_MOST_ERRORS],
        lines=len(lines),
        chars=len(content),
    )


def _shortened(message: PayloadPart, options: ToolOutputOptions) -> PayloadPart:
    """Cut the content of a message to its beginning and end if it is too long."""
    limit = options.max_tool_output_tokens
    size = options.count(message.content)
    if size <= limit or is_placeholder(message):
        return message
    text = message.content
    # First cut in proportion to the limit. Then cut further until the text fits, because tokens per character may vary
    # within the text.
    room = int(len(text) * limit / size)
    while True:
        head, tail = int(room * _HEAD_SHARE), room - int(room * _HEAD_SHARE)
        mark = f"\n[… {len(text) - head - tail} of {len(text)} characters left out …]\n"
        short = text[:head] + mark + (text[-tail:] if tail else "")
        if options.count(short) <= limit or room == 0:
            return _with_content(message, short, options)
        room = room * 9 // 10


def _with_content(message: PayloadPart, content: str, options: ToolOutputOptions) -> PayloadPart:
    return recount(replace(message, content=content), options.count)
