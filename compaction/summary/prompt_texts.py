"""Loads the texts of the summarising prompts: the package's files under `prompts/`, or an operator's replacements.

An operator's file has the same name as the file it replaces (`ledger.v8.txt`, for example). Each segment records the
version of the texts that made it.

A user prompt consists of sections, separated by blank lines. A section whose values are empty is left out, because
small models copy the heading of an empty section into their answer.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# The version is part of the file names. A changed text gets a new version, so that results can be told apart.
LEDGER_VERSION = "ledger.v8"
RECURSIVE_VERSION = "recursive.v6"
CHAPTER_VERSION = "chapter.v5"
_SEPARATOR = "\n=====\n"
_BLANK_LINES = re.compile(r"\n\s*\n")
# Finds the label of a section: in 'Previous summary (take it up and condense it):' the label is 'Previous summary'.
_LABEL = re.compile(r"^([^\n:(]+?)\s*(?:\([^)\n]*\))?:[ \t]*\n")
# A longer file is not a prompt.
_MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class _Form:
    """Which variables a prompt file must have and may have.

    `halves`: whether a line of five equals signs divides the file into a system part and a user part.
    """

    halves: bool
    needed: frozenset[str]
    known: frozenset[str]


_LIMITS = frozenset({"gist_chars", "fact_chars", "max_facts", "paragraph_chars"})
_OUTPUT = _Form(False, frozenset(), _LIMITS)
# What is known before the new turns.
_KNOWN = frozenset({"previous", "chapters", "known", "notes", "before", "day"})
_FORMS = {
    f"{LEDGER_VERSION}.txt": _Form(
        True, frozenset({"output", "turns"}), _LIMITS | _KNOWN | frozenset({"output", "turns"})
    ),
    f"{LEDGER_VERSION}.json.txt": _OUTPUT,
    f"{LEDGER_VERSION}.lines.txt": _OUTPUT,
    f"{RECURSIVE_VERSION}.txt": _Form(
        True,
        frozenset({"previous", "turns"}),
        _KNOWN | frozenset({"turns", "attempt", "correction", "paragraph_chars"}),
    ),
    f"{CHAPTER_VERSION}.txt": _Form(
        True,
        frozenset({"output", "parts", "known"}),
        _LIMITS | frozenset({"output", "chapters", "parts", "since", "known"}),
    ),
    f"{CHAPTER_VERSION}.json.txt": _OUTPUT,
    f"{CHAPTER_VERSION}.lines.txt": _OUTPUT,
}


class UserTemplate:
    """The user part of a prompt, divided into sections. `labels`: the headings of the sections."""

    def __init__(self, text: str) -> None:
        self._sections = tuple(Template(section) for section in _BLANK_LINES.split(text.strip("\n")))
        found = (_LABEL.match(section.template) for section in self._sections)
        self.labels: tuple[str, ...] = tuple(label[1] for label in found if label is not None)

    def fill(self, values: Mapping[str, str | int]) -> str:
        """Fill in the values and leave out sections whose values are all empty."""
        return "\n\n".join(
            section.substitute(values)
            for section in self._sections
            if not section.get_identifiers() or any(values[name] != "" for name in section.get_identifiers())
        )


class PromptTexts:
    """The prompt texts, read once. `folder`: the operator's files, or None to use only the package's files.

    Raises ValueError with a message for the operator if one of the files can't be used.
    """

    def __init__(self, folder: Path | None = None) -> None:
        own = {} if folder is None else _operators(folder)
        shipped = files("compaction.summary") / "prompts"
        self._texts = {name: own.get(name) or (shipped / name).read_text(encoding="utf-8") for name in _FORMS}
        self._changed = own

    def whole(self, name: str) -> Template:
        """Return the text of a file that has only one part."""
        return Template(self._texts[name])

    def halves(self, version: str) -> tuple[Template, UserTemplate]:
        """Return the system part and the user part of the main file of a version."""
        system, user = self._texts[f"{version}.txt"].split(_SEPARATOR, 1)
        return Template(system), UserTemplate(user)

    def version(self, version: str) -> str:
        """Return the version. If an operator replaced texts, a digest of them is added: `ledger.v8+3f9a1c20`."""
        own = "".join(text for name, text in sorted(self._changed.items()) if name.startswith(version))
        return f"{version}+{hashlib.sha256(own.encode()).hexdigest()[:8]}" if own else version


def _operators(folder: Path) -> dict[str, str]:
    """Return the operator's texts by file name."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder. Make it and put prompt files in it, or leave the setting out.")
    found: dict[str, str] = {}
    for name, form in _FORMS.items():
        path = folder / name
        if path.exists():
            found[name] = _checked(path, form)
    if not found:
        raise ValueError(f"{folder} has no prompt file. They are named {', '.join(_FORMS)}.")
    return found


def _checked(path: Path, form: _Form) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read as text: {error}") from error
    if len(text) > _MAX_CHARS:
        raise ValueError(f"{path} has {len(text)} characters; a prompt has at most {_MAX_CHARS}.")
    if form.halves and text.count(_SEPARATOR) != 1:
        raise ValueError(
            f"{path} must have two parts, with one line ===== between them: what is always said, and the turns."
        )
    template = Template(text)
    if not template.is_valid():
        raise ValueError(f"{path} has a $ that begins no word. Write $$ for a dollar sign.")
    said = frozenset(template.get_identifiers())
    if missing := form.needed - said:
        raise ValueError(f"{path} must say ${' and $'.join(sorted(missing))}, where the text goes.")
    if strange := said - form.known:
        raise ValueError(
            f"{path} says ${', $'.join(sorted(strange))}, which nothing stands for. It may say "
            f"${', $'.join(sorted(form.known))}; write $$ for a dollar sign."
        )
    return text
