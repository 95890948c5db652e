"""What a request to Discord can fail with."""

from __future__ import annotations

import aiohttp
import discord

# discord.py passes on what aiohttp raises when a connection breaks in the middle of a request
# (`ServerDisconnectedError`, `ClientPayloadError`), which is no `OSError`. Discord may have carried out such a request.
# `RuntimeError` is aiohttp's "Session is closed": the client is ending, or has given up.
REQUEST_ERRORS = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError, RuntimeError)
# Trouble of Discord's servers or of the network, after which another try may succeed. discord.py itself tries again
# after 500, 502 and 504 only.
PASSING_ERRORS = (discord.DiscordServerError, aiohttp.ClientError, OSError)
