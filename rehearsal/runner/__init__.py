"""Plays a scenario and records what happens.

- `play` is the entry point.
- `ports` has the protocols of what the runner needs from outside.
- `observations` are the reports of the bot and the model servers.
- `record` holds everything that was observed.
- `bot_lifecycle` starts and stops the bot.
- `local_environment` is the local Discord with people.
- `local_servers` are the model servers, and the script by which the language model answers.
"""
