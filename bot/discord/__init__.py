"""The Discord side of the bot. Start with `connection.connected`, which runs the `client`.

`place` implements a room's voice channel, `chat` its text channel, `stage` asks to speak in stage channels, `endpoint`
selects the Discord server. `commands` are the slash commands, and `access` decides who may use them. `admission`
decides which servers are served, `entry` which channels can be entered. `live_probe` is `roomtone doctor --live`.
"""
