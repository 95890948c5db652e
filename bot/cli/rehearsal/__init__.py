"""`roomtone rehearse`: runs the real bot in a local Discord. The entry point is `command.command`.

`options` parses the options of the command. `companion` runs the bot in this process. `serve` keeps the local Discord
up for other clients. `speech_engines` and `realtime_answers` are the models of a scenario's servers. `written` plays
evenings without sound.
"""
