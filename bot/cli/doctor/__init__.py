"""`roomtone doctor`: checks whether Roomtone can run here. The entry point is `command.command`.

The checks return a `finding` each: `machine` (libopus, web port, data directory, database, and the models of
recogniser, voice and memory search), `services` (Discord, language models, tools, screens; it also approves the tools
of an MCP server). `live_report` tells which steps of a call `--live` found to work in a real voice channel.
"""
