"""Shortens tool outputs as a conversation goes on, by rules and without a model. Source: spec 5.

An output over 2,000 tokens is cut to its beginning and end. An output older than 5 steps (model calls) is replaced by a
placeholder with tool, size and key facts, unless it holds the content of an active file: one that was read or mentioned
within the last few steps.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.budget.messages import is_tool_output, message_steps, next_step
from compaction.payload import PayloadPart, recount
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


# Also so long a file stays active after it was last read or mentioned.
MAX_TOOL_OUTPUT_AGE = 5
MAX_TOOL_OUTPUT_TOKENS = 2_000

# Names of tool arguments that contain the path of what the tool reads.
_PATH_ARGUMENTS = frozenset(
    {"path", "paths", "file", "files", "file_path", "filepath", "filename", "url", "attachment"}
)
# The first line of an output that names the file that it holds. A tool may choose it without an argument.
FILE_LINE = "File: "
# A shorter file name may occur in talk by chance.
_LEAST_SPOKEN_CHARS = 4

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
    )


def _shortened(message: PayloadPart, options: ToolOutputOptions) -> PayloadPart:
    if is_placeholder(message):
        return message
    short = shorten_output(message.content, options)
    return message if short == message.content else _with_content(message, short, options)


def shorten_output(text: str, options: ToolOutputOptions) -> str:
    """Return an output; if it is too long, its beginning and end."""
    limit = options.max_tool_output_tokens
    size = options.count(text)
    if size <= limit:
        return text
    # First cut in proportion to the limit. Then cut further until the text fits, because tokens per character may vary
    # within the text.
    room = int(len(text) * limit / size)
    while True:
        head, tail = int(room * _HEAD_SHARE), room - int(room * _HEAD_SHARE)
        mark = f"\n[… {len(text) - head - tail} of {len(text)} characters left out …]\n"
        short = text[:head] + mark + (text[-tail:] if tail else "")
        if options.count(short) <= limit or room == 0:
            return short
        room = room * 9 // 10


def _with_content(message: PayloadPart, content: str, options: ToolOutputOptions) -> PayloadPart:
    return recount(replace(message, content=content), options.count)


@dataclass(frozen=True, slots=True)
class FileReference:
    """One file or attachment. `last_access_step`: the model call in which it was last read or mentioned.

    `content_hash`: hash of the content when the file was last read, or None if it was only mentioned.
    """

    path: str
    last_access_step: int
    content_hash: str | None = None


def get_active_files(
    messages: Sequence[PayloadPart], current_step: int, *, max_age: int = MAX_TOOL_OUTPUT_AGE
) -> tuple[FileReference, ...]:
    """Return the files that are active at `current_step`, in the order of their first use."""
    known: dict[str, FileReference] = {}
    for message, step, read in zip(messages, message_steps(messages), paths_read(messages), strict=True):
        called = {path for call in message.tool_calls for path in _paths_in(call.arguments)}
        for path in sorted(read | called):
            before = known.get(path)
            content_hash = _hash(message.content) if path in read else before.content_hash if before else None
            known[path] = FileReference(path, step, content_hash)
        # Mentions that are too old can't make a file active, so they are not looked up.
        if message.role in {"user", "assistant"} and current_step - step <= max_age:
            for path, file in known.items():
                if file.last_access_step < step and _speaks_of(message.content, path):
                    known[path] = FileReference(path, step, file.content_hash)
    return tuple(file for file in known.values() if should_preserve_file_content(file, current_step, max_age=max_age))


def should_preserve_file_content(file: FileReference, current_step: int, *, max_age: int = MAX_TOOL_OUTPUT_AGE) -> bool:
    """Return whether a file's content is kept whole, because it was read or mentioned within the last
    `max_age` steps.
    """
    return current_step - file.last_access_step <= max_age


def paths_read(messages: Sequence[PayloadPart]) -> list[frozenset[str]]:
    """Return, for each message, the paths whose content it holds: those of the tool call that it answers, and the one
    that it names itself (`FILE_LINE`).
    """
    asked: dict[str, frozenset[str]] = {}
    found: list[frozenset[str]] = []
    for message in messages:
        asked.update((call.id, _paths_in(call.arguments)) for call in message.tool_calls)
        is_output = is_tool_output(message) and message.tool_call_id is not None
        named = asked.get(message.tool_call_id or "", frozenset()) | _file_of(message.content)
        found.append(named if is_output else frozenset())
    return found


def _file_of(output: str) -> frozenset[str]:
    """Return the file that the first line of an output names; that line may stand behind the mark of data."""
    first = (line.removeprefix(FILE_LINE).strip() for line in output.split("\n", 2)[:2] if line.startswith(FILE_LINE))
    return frozenset(filter(None, first))


def _paths_in(arguments: str) -> frozenset[str]:
    """Return the paths in the JSON arguments of a tool call. Returns none if the arguments are not valid JSON."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(_named(given)) if isinstance(given, dict) else frozenset()


def _named(given: Mapping[str, object]) -> list[str]:
    found: list[str] = []
    for name, value in given.items():
        if name.lower() not in _PATH_ARGUMENTS:
            continue
        values = value if isinstance(value, list) else [value]
        found += [each for each in values if isinstance(each, str) and each]
    return found


def _speaks_of(text: str, path: str) -> bool:
    """Return whether the text contains the path or the file name at its end."""
    name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return path in text or (len(name) >= _LEAST_SPOKEN_CHARS and name in text)


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]
