"""Signs what goes to a webhook (`bot.server_settings.Webhook`) as https://www.standardwebhooks.com says, so that any of
its libraries checks it, and sends it. `bot.posts.webhooks` decides what is sent, and when.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from bot.outgoing_address import checked_address, post
from bot.server_settings import Webhook

if TYPE_CHECKING:
    from bot.clock import Clock

# A transcript has eight megabytes at most.
TIMEOUT_S = 20.0
# How Standard Webhooks mark a secret in base64. It has 24 to 64 bytes.
SECRET_MARK, SECRET_BYTES = "whsec_", 32
FIRST_BODY = b'{"type": "test", "data": {}}'
# What may answer the first request: its server does not know the secret yet.
UNKNOWN_SECRET = frozenset({400, 401, 403})


class WebhookSender:
    """Signs requests and sends them. `private`: also to http addresses and to any network. `user_agent`: the bot's."""

    def __init__(self, *, private: bool, user_agent: str, clock: Clock) -> None:
        self._private = private
        self._user_agent = user_agent
        self._clock = clock

    def new(self, address: str) -> Webhook:
        """Return a webhook at an address that somebody has written, with a new secret. Raises `AddressRefusedError`."""
        secret = SECRET_MARK + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
        return Webhook(checked_address(address, private=self._private), secret, self._clock.now())

    async def greet(self, webhook: Webhook) -> None:
        """Send a first request, which says nothing. Raises as `send` does if nothing there takes requests."""
        await self.send(webhook, f"test-{secrets.token_hex(6)}", FIRST_BODY, accepted=UNKNOWN_SECRET)

    async def send(
        self, webhook: Webhook, message_id: str, body: bytes, *, accepted: frozenset[int] = frozenset()
    ) -> None:
        """Send JSON. `message_id`: the same for each attempt. `accepted`: statuses besides 2xx that will do.

        Raises `AddressRefusedError` and `DeliveryError`.
        """
        at = str(int(self._clock.now()))
        key = b64decode(webhook.secret.removeprefix(SECRET_MARK))
        signed = hmac.digest(key, f"{message_id}.{at}.".encode() + body, "sha256")
        headers = {
            "webhook-id": message_id,
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{b64encode(signed).decode()}",
            "User-Agent": self._user_agent,
        }
        # The operator may allow less by now.
        address = checked_address(webhook.address, private=self._private)
        await post(address, body, headers, private=self._private, within_s=TIMEOUT_S, accepted=accepted)
