"""`roomtone rehearse`: runs the real bot in a local Discord. The entry point is `command.command`.

`options` parses the options of the command. `companion` runs the bot in this process. `serve` keeps the local Discord
up for other clients. `model_servers` starts local endpoints; `chat_model`, `speech_engines` and `realtime_answers` are
the models behind them. `written` plays evenings without sound.
"""
