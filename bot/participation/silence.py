"""Whether the bot has been told to hold its tongue on a server, by whom, and who may take that back. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Silence:
    """A server's silence. `always`: a moderator's, until a moderator takes it back.

    `session_id`: anybody's, for that session at most, and until `until` (UTC epoch seconds) if that is set.
    """

    always: bool = False
    session_id: str | None = None
    until: float | None = None

    def holds(self, session_id: str | None, *, now: float) -> bool:
        """Return whether the bot is silent in that session. `now`: UTC epoch seconds."""
        return self.always or self.holds_for_now(session_id, now=now)

    def holds_for_now(self, session_id: str | None, *, now: float) -> bool:
        """Return whether somebody has silenced it in that session for now."""
        if self.session_id is None or self.session_id != session_id:
            return False
        return self.until is None or now < self.until

    def for_now(self, session_id: str, *, until: float | None = None) -> Silence:
        """Return it with the bot silent in that session, for as long as the session lasts or until `until`."""
        return replace(self, session_id=session_id, until=until)

    def for_good(self) -> Silence:
        """Return it with the bot silent on the server."""
        return replace(self, always=True)

    def lifted(self, *, by_moderator: bool) -> Silence:
        """Return what is left of it when somebody lets the bot talk: what a moderator laid on, unless it is one."""
        return Silence(always=self.always and not by_moderator)
