"""Whether somebody tells the bot aloud to be silent for now, or to talk again. Pure.

'Stop' over its words stops the reply, whoever says it; that is barge-in. This is about more: not to speak until it
is asked to. So only words that can mean nothing else count, and only from who has the bot's ear.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Around the request: 'oh please just shut up now, will you'.
_FILLERS = frozenset(
    {
        "please", "just", "now", "okay", "ok", "oh", "hey", "will", "you", "would", "could", "can", "for", "a", "while",
        "bit", "moment", "minute", "already", "and", "so", "then", "right", "thanks", "thank", "kindly", "god", "no",
        "the", "fuck", "hell", "today", "tonight", "again", "once", "more",
    }
)  # fmt: skip
_HUSH = frozenset(
    {
        "shut up", "shut it", "be quiet", "quiet", "stay quiet", "keep quiet", "be silent", "stay silent", "silence",
        "stop", "stop it", "stop talking", "stop speaking", "hush", "shush", "shh", "shhh", "sh", "zip it", "stop that",
        "don't talk", "do not talk", "don't speak", "do not speak", "no talking", "mute yourself", "mute", "go mute",
        "stop stop", "stop stop stop", "shut your mouth", "not talk", "say nothing", "don't say anything",
        "not now",
    }
)  # fmt: skip
_SPEAK = frozenset(
    {
        "talk", "speak", "may talk", "may speak", "talk to us", "speak up", "unmute", "unmute yourself", "come back",
        "start talking", "be back", "join in", "are allowed to talk", "are allowed to speak",
    }
)  # fmt: skip
_MOST_WORDS = 9


def asks_for_silence(text: str) -> bool:
    """Return whether `text`, without the bot's name, asks it to be silent for now: 'please be quiet for a while'."""
    return _is_about(text, _HUSH)


def asks_to_talk(text: str) -> bool:
    """Return whether `text`, without the bot's name, lets it speak again: 'you can talk again'."""
    return _is_about(text, _SPEAK)


def _is_about(text: str, phrases: frozenset[str]) -> bool:
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
    if not words or len(words) > _MOST_WORDS:
        return False
    for first in range(len(words)):
        for end in range(len(words), first, -1):
            rest = (*words[:first], *words[end:])
            if " ".join(words[first:end]) in phrases and all(word in _FILLERS for word in rest):
                return True
    return False
