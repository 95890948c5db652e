"""The part of a prompt that tells who is in the voice channel. Pure.

People who have said nothing since the summary, or nothing at all, are in no turn, so a model could not know of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.payload import PartKind, PayloadPart, data_part
from compaction.speaker_names import plain_name

if TYPE_CHECKING:
    from collections.abc import Sequence

# On a stage there may be hundreds.
MOST_NAMES = 25


def presence_part(names: Sequence[str], *, unheard: int = 0) -> PayloadPart:
    """Return the part with the people in the channel. `names`: of those who are heard, as turns have them. `unheard`:
    how many are not, because they opted out or have not agreed; they are not named.
    """
    listed = [plain_name(name) for name in names[:MOST_NAMES]]
    if (more := len(names) - MOST_NAMES) > 0:
        listed.append(f"{more} more")
    text = f"In the voice channel with you now: {', '.join(listed) or 'nobody whom you hear'}."
    if unheard:
        text += f" Others here whom you do not hear, because they opted out or have not agreed: {unheard}."
    return data_part(PartKind.PARTICIPANTS, text)
