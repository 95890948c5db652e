"""The bot: it turns a voice connection into turns, replies and their memory. Start with `app`.

`discord` connects the bot to Discord and `cli` is its command line; `wiring` builds what `room` needs. A room
recognises speech, decides whether to answer (`participation`, `brain`), replies (`llm`, `realtime`), reads shared
screens (`screen`, `web`) and remembers (`memory`, `store`, `embedding`). `models` downloads local models; `mcp`
connects tool servers. All packages share `events`, `guild` and `settings`.
"""

# Switches off ONNX Runtime's telemetry before anything here loads it.
import voice as voice
