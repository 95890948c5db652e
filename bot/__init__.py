"""The bot: it turns a voice connection into turns, replies and their memory. Start with `app`.

`discord` connects the bot to Discord and `cli` is its command line; `wiring` builds what `room` needs. A room talks to
its voice `channel` through a port. It recognises speech, decides whether to answer (`participation`, `brain`), replies
(`llm`, `realtime`), reads shared screens (`screen`, `web`) and remembers (`memory`, `store`, `embedding`). `models`
downloads local models; `mcp` connects tool servers; `texts` translates what people read.

`dashboard` and `monitoring` show how the rooms are. `cluster` runs recognisers on several machines.

All packages share `events`, `guild`, `settings`, `errors`, `clock` and `health`; `server_settings` is what each server
has chosen, `shards` which servers a process has. `background_task` is for tasks, `private_files` and `folder_lock`
for the data folder. `logs` writes the log without secrets and without what people said, reads it and deletes old lines.
"""

# Switches off ONNX Runtime's telemetry before anything here loads it.
import voice as voice
