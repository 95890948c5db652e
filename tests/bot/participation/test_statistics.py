"""The part of /status about participation."""

from __future__ import annotations

import re

from bot.brain.decider import Decision, Reason
from bot.cost import NOTHING, Cost
from bot.guild import Silence, VoiceMode
from bot.participation.costs import CostLedger, cost_in_words
from bot.participation.guild_state import GuildState
from bot.participation.statistics import REASONS, ParticipationStatistics, mode_sentence, why_silent
from bot.server_settings import no_server_settings
from bot.texts.text import in_language
from tests.fakes.clock import FakeClock

FREE = mode_sentence(VoiceMode.FREE)


def guild(ceiling: Cost = NOTHING) -> GuildState:
    """Return a guild's participation."""
    return GuildState(10, no_server_settings(), VoiceMode.FREE, ("Roomtone",), CostLedger(ceiling), FakeClock())


def test_nothing_happened_yet() -> None:
    """Before anything happens, the status has only the mode."""
    assert ParticipationStatistics().format(guild(), now=0.0) == FREE


def test_everything_is_told_by_reason() -> None:
    """Replies and silences are listed by reason, most frequent first. Without limits, only the costs are shown."""
    statistics, here = ParticipationStatistics(), guild()
    for reason in (Reason.WAKE_NAME, Reason.ENGAGED, Reason.ENGAGED):
        statistics.count(Decision(True, reason))
    statistics.count(Decision(False, Reason.NOT_ADDRESSED))
    statistics.skipped = 1
    here.costs.add(Cost(3, 12_345, 61.4, 0.0123), now=0.0)
    took_part, nothing, silent, used, *rest = statistics.format(here, now=1.0).splitlines()
    assert "3 times (somebody went on talking with me: 2, somebody said my name: 1)" in took_part
    assert "1 time " in nothing
    assert "1 time (not meant for me: 1)" in silent
    assert rest == FREE.splitlines()
    assert re.findall(r"\d[\d,]*", used) == ["3", "12,345", "61", "0", "0123"]
    assert "/talk" in why_silent(here, silenced=True)


def test_a_ceiling_and_a_managers_silence_are_told() -> None:
    """With limits, the costs are shown beside the limits. A manager's silence is shown too."""
    here = guild(Cost(240, 1_000_000, 1_800.0))
    here.servers.hold_silence(here.guild_id, Silence(always=True))
    here.costs.add(Cost(1, 650, 4.0), now=0.0)
    used = ParticipationStatistics().format(here, now=1.0)
    assert re.findall(r"[\d,]+ of [\d,]+", used) == ["1 of 240", "650 of 1,000,000", "4 of 1,800"]
    assert "manager" in why_silent(here, silenced=True)


def test_one_of_each_is_told_in_the_singular() -> None:
    """One call, token and second are no calls, tokens and seconds."""
    assert cost_in_words(Cost(1, 1, 1.2)) == "1 request to the language model, 1 token, 1 second of speech"
    assert cost_in_words(Cost(1, 0, 0.0), Cost(240)) == "1 of 240 requests to the language model"


def test_every_reason_has_its_words() -> None:
    """Each reason for speaking or silence is told in words that read well beside a number, in German too."""
    assert set(REASONS) == set(Reason)
    statistics = ParticipationStatistics()
    statistics.count(Decision(True, Reason.WAKE_NAME))
    told = in_language(statistics.format(guild(), now=0.0), "de")
    assert "(jemand sagte meinen Namen: 1)" in told
