"""The only package that uses private parts of discord.py (2.7.1, pinned), in order to receive sound.

discord.py does the voice handshake, the end-to-end group and sending. These modules override its connection state,
voice websocket and socket reader where necessary: to receive datagrams, to survive bad messages of the voice server,
and to fix three races. They do not interpret packets. `tests/voice/transport/test_private.py` fails when the parts
used here change; docs/decisions/0002-discord-private-parts.md gives the reasons for using them.
"""
