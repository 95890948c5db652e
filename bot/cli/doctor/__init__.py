"""`roomtone doctor`: checks whether Roomtone can run here. The entry point is `command.command`.

The checks return a `finding` each: `installation` (Python, packages), `machine` (user, sockets, web port),
`storage` (data directory, database), `speech_models` (recogniser, voice), `memory_search` (embedder), `services`
(Discord, language models, tools, screens). `live_report` tells what `--live` found in a real voice channel.
"""
