"""What a request to Discord can fail with."""

from __future__ import annotations

import aiohttp
import discord

# discord.py passes on what aiohttp raises when a connection breaks in the middle of a request
# (`ServerDisconnectedError`, `ClientPayloadError`), which is no `OSError`. Discord may have carried out such a request.
REQUEST_ERRORS = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError)
