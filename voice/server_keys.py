"""The keys of settings that differ between servers.

They are validated when settings are read: a server's name in place of its id would be looked up by nobody, and what was
set for it, such as whom the bot may hear, would silently not hold.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

# What Discord shows as `Copy Server ID` in its developer mode, or `all` for every server.
ServerKey = Annotated[str, Field(pattern=r"^(all|[1-9][0-9]{0,19})$")]
