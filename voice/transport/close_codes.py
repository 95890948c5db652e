"""The voice gateway's close codes: which ones end a session for good, and which ones allow a resume.

Source: Discord's developer documentation, "Voice Close Event Codes", and discord.py 2.7.1 for codes missing there.
"""

from __future__ import annotations

from voice.errors import LinkError

# The channel or its call ended, somebody removed or moved the bot, or the voice server changes (4014, 4022). The main
# gateway says which of them it is.
DISCONNECTED = 4014
CALL_ENDED = 4022
SENT_AWAY = frozenset({DISCONNECTED, CALL_ENDED})
RATE_LIMITED = 4021
# The voice server crashed. This is the only code after which discord.py resumes.
SERVER_CRASHED = 4015
# 1001 (server going away) and 1006 (connection lost): the server keeps the session for a while.
RESUMABLE = frozenset({1001, 1006, SERVER_CRASHED})

# Retrying does not help with these.
_FATAL = {
    4004: "Discord refused the voice token (4004). Use /join again; if it stays, Discord has trouble.",
    4011: "Discord does not know the voice server (4011). Move the channel to another region.",
    4012: "Discord does not accept this voice protocol (4012). Update Roomtone.",
    4016: "Discord does not accept this encryption mode (4016). Update Roomtone.",
    4017: "Discord asks for end-to-end encryption (4017). Install the pinned davey package: `make setup`.",
    RATE_LIMITED: "Discord limits how often I may join (4021). Wait some minutes.",
    CALL_ENDED: "The channel or its call was ended (4022).",
}


def fatal_reason(code: int | None) -> LinkError | None:
    """Return the error with the remedy if retrying after `code` is useless, else None."""
    return None if code is None or code not in _FATAL else LinkError(_FATAL[code], retryable=False)
