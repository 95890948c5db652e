"""Plays a scenario, spoken or written, and records what happens.

- `play` is the entry point.
- `ports` has the protocols of what the runner needs from outside.
- `record` holds everything that was said and observed, the events of the bot among it.
- `bot_lifecycle` starts and stops the bot.
- `local_environment` is the local Discord with people; `screen_share` is what one of them shows the bot.
- `local_servers` are the model servers, and the script by which the language model answers.
"""
