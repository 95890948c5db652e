"""The Discord side of the bot. Way in: `client.connected`.

`place` is a voice channel as rooms see it, `chat` its text channel, `stage` asks to speak on stages, `endpoint` points
the library at another server, `commands` are the slash commands.
"""
