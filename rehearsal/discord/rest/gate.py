"""What every request to REST passes before its handler: ordered faults, and Discord's rate limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.discord.rest.faults import VIA, limited

if TYPE_CHECKING:
    from aiohttp import web

    from rehearsal.discord.limits.rate_limits import RateLimits
    from rehearsal.discord.rest.faults import RestFaults
    from rehearsal.discord.rest.wire import Handler


class RestGate:
    """Lets requests through, or answers them itself."""

    def __init__(self, limits: RateLimits, faults: RestFaults) -> None:
        self._limits = limits
        self._faults = faults

    def guarded(self, method: str, route: str, handler: Handler) -> Handler:
        """Return a handler behind the gate. `route`: its path after the prefix of the API, with named parts."""
        # Answers to interactions are authorised by their token alone, and only follow-ups and edits have limits.
        of_interaction = route.startswith(("/interactions/", "/webhooks/"))

        async def passed(request: web.Request) -> web.Response:
            refused = self._faults.ban_answer() or (None if of_interaction else self._faults.refused.next())
            if refused is not None:
                return refused
            who = "" if of_interaction else request.headers.get("Authorization", "nobody")
            allowance = self._limits.use(who, method, route, request.match_info)
            if allowance.retry_after_s is not None:
                scope = "global" if allowance.everywhere else "user"
                answer = limited(allowance.retry_after_s, everywhere=allowance.everywhere, scope=scope)
                answer.headers.update(allowance.headers)
                return answer
            errors = self._faults.interaction_errors if of_interaction else self._faults.errors
            carried_out = errors.carried_out
            failed = errors.next()
            if failed is not None:
                if carried_out:
                    await handler(request)
                return failed
            answer = await handler(request)
            answer.headers.update({**VIA, **allowance.headers})
            return answer

        return passed
