"""Finds the files, attachments and frames that a conversation still uses.

A file that was read or mentioned within the last few steps is active. The content of an active file is kept whole while
other tool outputs are shortened. Source: spec 5, file-aware retrieval.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.budget.messages import is_tool_output, message_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compaction.payload import PayloadPart

# A file stays active for this many steps after it was last read or mentioned.
ACTIVE_STEPS = 5
# Names of tool arguments that contain the path of what the tool reads.
_PATH_ARGUMENTS = frozenset(
    {"path", "paths", "file", "files", "file_path", "filepath", "filename", "url", "attachment", "frame", "frame_id"}
)
# A shorter file name may occur in talk by chance.
_LEAST_SPOKEN_CHARS = 4


@dataclass(frozen=True, slots=True)
class FileReference:
    """One file, attachment or frame. `last_access_step`: the model call in which it was last read or mentioned.

    `content_hash`: hash of the content when the file was last read, or None if it was only mentioned.
    """

    path: str
    last_access_step: int
    content_hash: str | None = None


def get_active_files(
    messages: Sequence[PayloadPart], current_step: int, *, max_age: int = ACTIVE_STEPS
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


def should_preserve_file_content(file: FileReference, current_step: int, *, max_age: int = ACTIVE_STEPS) -> bool:
    """Return whether a file's content is kept whole, because it was read or mentioned within the last
    `max_age` steps.
    """
    return current_step - file.last_access_step <= max_age


def paths_read(messages: Sequence[PayloadPart]) -> list[frozenset[str]]:
    """Return, for each message, the paths whose content it holds: those of the tool call that it answers."""
    asked: dict[str, frozenset[str]] = {}
    found: list[frozenset[str]] = []
    for message in messages:
        asked.update((call.id, _paths_in(call.arguments)) for call in message.tool_calls)
        is_output = is_tool_output(message) and message.tool_call_id is not None
        found.append(asked.get(message.tool_call_id or "", frozenset()) if is_output else frozenset())
    return found


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
