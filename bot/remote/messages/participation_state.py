"""How the bot takes part on a server, as one process tells it to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.guild import Silence, VoiceMode  # noqa: TC001 - pydantic reads the annotations

if TYPE_CHECKING:
    from bot.participation.guild_participation import GuildParticipation


@dataclass(frozen=True, slots=True)
class ParticipationState:
    """How the bot takes part on the server now: the parts of a `GuildParticipation` that commands change.

    `notice`, `told`: who has had which notice in the session.
    """

    voice_mode: VoiceMode
    wake_names: tuple[str, ...]
    silence: Silence
    opted_out: frozenset[int]
    asks: bool
    agreed: frozenset[int]
    consented_in: str | None
    notice: str = ""
    told: frozenset[int] = frozenset()


def participation_state(guild: GuildParticipation) -> ParticipationState:
    """Return how the bot takes part, for the other process."""
    return ParticipationState(
        voice_mode=guild.voice_mode,
        wake_names=guild.wake_names,
        silence=guild.silence,
        opted_out=guild.opted_out,
        asks=guild.asks,
        agreed=guild.consent.agreed,
        consented_in=guild.consent.session_id,
        notice=guild.consent.notice,
        told=guild.consent.told,
    )


def apply_participation(told: ParticipationState, guild: GuildParticipation) -> None:
    """Let what was told apply at once. Whether the bot asks is settled when a session begins.

    People agree in one session: what was told before the gateway process knew of this one is not about it.
    """
    guild.opted_out = told.opted_out
    guild.consent.agreed = told.agreed if told.consented_in == guild.consent.session_id else frozenset()
    guild.voice_mode, guild.wake_names, guild.silence = told.voice_mode, told.wake_names, told.silence
