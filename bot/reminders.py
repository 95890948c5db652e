"""Reminders: what people asked for, what becomes of one that is due, and the words in which it is told. Pure.

One is told aloud in its channel. In the session in which it was asked for that is as soon as nobody speaks, whoever is
there; in a later one only if who asked is there too, because others may not have heard them. Nobody wants it a day
late. One for which somebody has pressed is written into the channel's chat if the bot is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from bot.texts.text import Text, joined
from bot.time_phrases import format_ago
from compaction.language.text import as_sentence

if TYPE_CHECKING:
    from collections.abc import Collection

    from bot.store.reminders import Reminder

# The tool with which a model keeps one.
REMIND: Final = "remind"
NO_TIME = Text("I do not know when that is. Say in how many minutes, or at what time, for example 21:30.")
# What fits into one breath.
MOST_CHARS = 200
# Of one person on one server, and how far ahead.
MOST_EACH = 20
MOST_DAYS = 7
# One for which nobody was there is dropped after this.
LATE_S = 24 * 3600.0
# Whoever is reminded this much later is told so.
NOTICED_S = 120.0
# Its words were taken back.
NOT_OF_WHAT = Text("I may no longer say what it was for.")


def fate(
    reminder: Reminder, *, now: float, session_id: str, present: Collection[int]
) -> Literal["wait", "tell", "drop"]:
    """Return what becomes of a reminder in a session of its channel. `present`: the ids of who is there."""
    if now < reminder.due_at:
        return "wait"
    if now - reminder.due_at > LATE_S:
        return "drop"
    return "tell" if reminder.session_id == session_id or reminder.person_id in present else "wait"


def telling(reminder: Reminder, *, name: str, now: float) -> Text:
    """Return what is said, or written. `name`: of who asked, or what mentions them."""
    what = as_sentence(reminder.what, MOST_CHARS)
    if not reminder.people:
        told = joined((Text("{name}, your time is up.", name=name), NOT_OF_WHAT))
    elif not what:
        told = Text("{name}, your time is up.", name=reminder.whom or name)
    elif reminder.whom:
        told = Text("{whom}, {name} asked me to remind you: {what}", whom=reminder.whom, name=name, what=what)
    else:
        told = Text("{name}, here is your reminder: {what}", name=name, what=what)
    late_s = now - reminder.due_at
    late = Text("I am late. You wanted this {when}.", when=format_ago(late_s)) if late_s > NOTICED_S else ""
    return joined((told, late))
