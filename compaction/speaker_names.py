"""Display names as they stand in the lines of one session: plain, and each of one person only."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from compaction.language.text import plain
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMELESS = "Somebody"
# Discord allows 32.
_MAX_NAME_CHARS = 40
_NUMBER = re.compile(r" \(\d+\)$")
# Signs that stand around a name or a time in a prompt: with them a name could look like the beginning of another line.
_LINE_SIGNS = re.compile(r"[\[\]［］:：<>‹›＜＞{}|*#~`\"]+")


class SpeakerNames:
    """The names of a session's speakers, by their ids. Two people called Sam are 'Sam' and 'Sam (2)'.

    The one who is named first keeps the plain name, and a name is never given to another person.
    """

    def __init__(self, known: Iterable[tuple[str, str]] = ()) -> None:
        """`known`: pairs of id and name that were given earlier in the session, the first one first."""
        self._owners: dict[str, str] = {}
        for speaker_id, name in known:
            self.name_of(speaker_id, name)

    def name_of(self, speaker_id: str, display_name: str) -> str:
        """Return the name of this speaker. It is the same for each display name that the speaker has had."""
        name = plain_name(display_name)
        unique, number = name, 1
        while self._owners.setdefault(_as_seen(unique), speaker_id) != speaker_id:
            number += 1
            unique = f"{name} ({number})"
        return unique


def _as_seen(name: str) -> str:
    """Return what names have in common that look alike: 'Ａda' in wide letters, '𝐀da' in bold ones and 'ada'."""
    return unicodedata.normalize("NFKC", name).casefold()


def plain_name(display_name: str) -> str:
    """Return a display name on one line, without signs that structure a prompt; 'Somebody' if nothing is left.

    `plain` changes nothing of it, alone or in a sentence: folds, which write everything plainly, would else make Ada of
    '- Ada' and '_Ada'.
    """
    name = " ".join(_LINE_SIGNS.sub(" ", inline(display_name)).split())[:_MAX_NAME_CHARS].strip()
    # Behind one mark of a list there may be another. Alone '_Ada' is plain already, in a sentence it is not.
    while (plainer := plain(name).strip("_")) != name:
        name = plainer
    return name or NAMELESS


def is_called(name: str, wanted: str) -> bool:
    """Return whether a speaker's name is `wanted`, in any capitalisation and with or without its number."""
    given, asked = plain_name(name).casefold(), plain_name(wanted).casefold()
    return asked in {given, _NUMBER.sub("", given)}
