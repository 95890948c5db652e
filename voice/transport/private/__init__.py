"""The only package that uses private parts of discord.py (2.7.1, pinned), in order to receive sound.

discord.py does the voice handshake, the end-to-end group and sending. These modules override its connection state,
voice websocket and socket reader where necessary: to receive datagrams, to survive bad messages of the voice server,
and to repair what docs/decisions/0002-discord-private-parts.md lists. They do not interpret packets.

A `client` has a `connection_state`, which has a `websocket` and a `socket_reader`, makes `attempts` to replace a broken
websocket, and knows which key changes are under way (`pending_transitions`). `main_session` tells whether the
main gateway is there, and `rest_pause` mends how requests wait.
Only the websocket calls back into its connection state, as discord.py's does.
`tests/voice/transport/test_private.py` fails when these parts change.
"""

import davey
import discord

DISCORD_VERSION = "2.7.1"
DAVEY_VERSION = "0.1."


def require_versions(discord_version: str, davey_version: str) -> None:
    """Raise `ImportError` unless these versions of discord.py and davey are the ones that can be worked with."""
    if discord_version != DISCORD_VERSION or not davey_version.startswith(DAVEY_VERSION):
        raise ImportError(
            f"Hearing works with discord.py {DISCORD_VERSION} and davey {DAVEY_VERSION}x alone, and here are "
            f"discord.py {discord_version} and davey {davey_version}. Install these versions, and no other library "
            "that is imported as `discord`."
        )


require_versions(discord.__version__, davey.__version__)
