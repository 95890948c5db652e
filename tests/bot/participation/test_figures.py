"""What /status says of taking part."""

from __future__ import annotations

from bot.brain.decider import Decision, Reason
from bot.guild import Silence, VoiceMode
from bot.participation.figures import Figures
from bot.participation.ledger import Ceiling, Ledger, Spent
from bot.participation.standing import GuildParticipation


def standing(ceiling: Ceiling | None = None) -> GuildParticipation:
    """Return a server's."""
    return GuildParticipation(10, VoiceMode.FREE, ("Roomtone",), Ledger(ceiling or Ceiling()))


def test_nothing_happened_yet() -> None:
    """Then only the mode is told."""
    assert Figures().told(standing(), silenced=False, now=0.0) == "I speak in the mode free."


def test_everything_is_told_by_reason() -> None:
    """The most frequent first; without a ceiling only what was spent."""
    figures, here = Figures(), standing()
    for reason in (Reason.WAKE_NAME, Reason.ENGAGED, Reason.ENGAGED):
        figures.count(Decision(True, reason))
    figures.count(Decision(False, Reason.NOT_ADDRESSED))
    figures.skipped = 1
    here.ledger.add(Spent(3, 12_345, 61.4), now=0.0)
    assert figures.told(here, silenced=True, now=1.0) == (
        "I took part 3 times (2 engaged, 1 wake name). 1 time there was nothing to say after all. I kept silent 1 time "
        "(1 not addressed). The last hour took 3 calls of the model, 12,345 tokens, 61 seconds of speech. I speak in "
        "the mode free. I am silenced for now; /talk lets me speak."
    )


def test_a_ceiling_and_a_moderators_silence_are_told() -> None:
    """What may be spent beside what was."""
    here = standing(Ceiling(240, 1_000_000, 1_800.0))
    here.silence = Silence(always=True)
    here.ledger.add(Spent(1, 650, 4.0), now=0.0)
    assert Figures().told(here, silenced=True, now=1.0) == (
        "The last hour took 1 of 240 calls of the model, 650 of 1,000,000 tokens, 4 of 1,800 seconds of speech. "
        "I speak in the mode free. A moderator has silenced me."
    )
