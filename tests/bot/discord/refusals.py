"""Discord's refusals, as discord.py raises them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import discord

NOT_FOUND = discord.NotFound(cast("Any", SimpleNamespace(status=404, reason="no")), "Unknown Member")
FORBIDDEN = discord.Forbidden(cast("Any", SimpleNamespace(status=403, reason="no")), "Missing Access")
