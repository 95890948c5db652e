"""The bot: from a voice connection to turns, replies and their memory. `app` is the way in.

`discord` puts it on Discord and `cli` on the command line; `wiring` builds what `room` needs. A room hears, decides
(`participation`, `brain`), replies (`llm`, `realtime`), watches (`screen`, `web`) and remembers (`memory`, `store`,
`embedding`). `models` downloads local models; `mcp` connects tool servers. All share `events`, `guild`, `settings`.
"""
