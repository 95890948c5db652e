"""The summarising prompts as texts: the package's own files under `prompts/`, or an operator's in their place.

A file of the operator's has the name of the one that it replaces (`ledger.v2.txt`, say); what isn't there stays the
package's. Which texts were used can be told from the version that each segment records.

A section of a user part (what stands between blank lines) is told only when there is something to tell in it: a small
model copies the heading of an empty one into its answer.
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

# The version is part of the file names; a changed text is a new version, so that results can be told apart.
LEDGER_VERSION = "ledger.v2"
RECURSIVE_VERSION = "recursive.v2"
_SEPARATOR = "\n=====\n"
_BLANK_LINES = re.compile(r"\n\s*\n")
# 'Previous summary (take it up and condense it):' is the label 'Previous summary'.
_LABEL = re.compile(r"^([^\n:(]+?)\s*(?:\([^)\n]*\))?:[ \t]*\n")
# Longer files are no prompts.
_MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class _Form:
    """What a prompt file must say and may say. `halves`: it has a system part and a user part, told apart by a line
    of five equals signs."""

    halves: bool
    needed: frozenset[str]
    known: frozenset[str]


_FORMS = {
    f"{LEDGER_VERSION}.txt": _Form(
        True, frozenset({"output", "turns"}), frozenset({"output", "previous", "known", "notes", "turns"})
    ),
    f"{LEDGER_VERSION}.json.txt": _Form(False, frozenset(), frozenset({"gist_chars", "fact_chars", "max_facts"})),
    f"{LEDGER_VERSION}.lines.txt": _Form(False, frozenset(), frozenset({"gist_chars", "fact_chars", "max_facts"})),
    f"{RECURSIVE_VERSION}.txt": _Form(
        True,
        frozenset({"previous", "turns"}),
        frozenset({"previous", "notes", "turns", "correction", "summary_chars"}),
    ),
}


class UserTemplate:
    """What the model is given to work on, in sections."""

    def __init__(self, text: str) -> None:
        self._sections = tuple(Template(section) for section in _BLANK_LINES.split(text.strip("\n")))
        found = (_LABEL.match(section.template) for section in self._sections)
        self.labels: tuple[str, ...] = tuple(label[1] for label in found if label is not None)

    def fill(self, values: Mapping[str, str | int]) -> str:
        """Return the sections with these values, without those that only name empty ones."""
        return "\n\n".join(
            section.substitute(values)
            for section in self._sections
            if not section.get_identifiers() or any(values[name] != "" for name in section.get_identifiers())
        )


class PromptTexts:
    """The texts, read once. `folder`: the operator's files, None for the package's alone.

    Raises ValueError with a sentence when a file of the operator's can't be used.
    """

    def __init__(self, folder: Path | None = None) -> None:
        own = {} if folder is None else _operators(folder)
        shipped = files("compaction.summary") / "prompts"
        self._texts = {name: own.get(name) or (shipped / name).read_text(encoding="utf-8") for name in _FORMS}
        self._changed = own

    def whole(self, name: str) -> Template:
        """Return the text of a file that has one part."""
        return Template(self._texts[name])

    def halves(self, version: str) -> tuple[Template, UserTemplate]:
        """Return system and user part of a version's main file."""
        system, user = self._texts[f"{version}.txt"].split(_SEPARATOR, 1)
        return Template(system), UserTemplate(user)

    def version(self, version: str) -> str:
        """Return the version, with a mark of the operator's texts where it has such: `ledger.v2+3f9a1c20`."""
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
