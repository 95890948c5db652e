"""Who was told of the notice and agreed belongs to one session."""

from __future__ import annotations

from bot.guild import VoiceMode
from bot.participation.costs import CostCeiling, CostLedger
from bot.participation.guild_participation import GuildParticipation
from bot.participation.session_consent import SessionConsent

ADA, BO = 1, 2


def test_another_notice_was_told_to_nobody() -> None:
    """People are kept for the newest notice alone."""
    consent = SessionConsent("evening")
    consent.tell("first", frozenset({ADA}))
    consent.tell("first", frozenset({BO}))
    assert consent.told_by("first") == {ADA, BO}
    assert consent.told_by("second") == frozenset()
    consent.tell("second", frozenset({BO}))
    assert consent.told_by("second") == {BO}
    assert consent.told_by("first") == frozenset()


def test_another_session_begins_without_answers() -> None:
    """A session that goes on keeps its answers, another one has none."""
    guild = GuildParticipation(10, VoiceMode.ENGAGED, ("Roomtone",), CostLedger(CostCeiling()), asks=True)
    guild.begin_session("evening")
    guild.consent.agreed = frozenset({ADA})
    guild.consent.forgotten_until[BO] = 1.0
    guild.tell("words", frozenset({ADA}))
    guild.begin_session("evening")
    assert not guild.excludes(ADA)
    assert guild.consent.told_by("words") == {ADA}
    guild.begin_session("next")
    assert guild.excludes(ADA)
    assert guild.consent == SessionConsent("next")
