"""The summarising prompts as texts: the package's own files under `prompts/`, or an operator's in their place.

A file of the operator's has the name of the one that it replaces (`ledger.v1.txt`, say); what isn't there stays the
package's. Which texts were used can be told from the version that each segment records.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# The version is part of the file names; a changed text is a new version, so that results can be told apart.
LEDGER_VERSION = "ledger.v1"
RECURSIVE_VERSION = "recursive.v1"
_SEPARATOR = "\n=====\n"
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


class PromptTexts:
    """The texts, read once. `folder`: the operator's files, None for the package's alone.

    Raises ValueError with a sentence when a file of the operator's can't be used.
    """

    def __init__(self, folder: Path | None = None) -> None:
        own = {} if folder is None else _operators(folder)
        shipped = files("compaction") / "prompts"
        self._texts = {name: own.get(name) or (shipped / name).read_text(encoding="utf-8") for name in _FORMS}
        self._changed = own

    def whole(self, name: str) -> Template:
        """Return the text of a file that has one part."""
        return Template(self._texts[name])

    def halves(self, version: str) -> tuple[Template, Template]:
        """Return system and user part of a version's main file."""
        system, user = self._texts[f"{version}.txt"].split(_SEPARATOR, 1)
        return Template(system), Template(user)

    def version(self, version: str) -> str:
        """Return the version, with a mark of the operator's texts where it has such: `ledger.v1+3f9a1c20`."""
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
