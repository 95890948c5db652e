"""Builds the running bot's parts from the settings; `bot.app` composes them.

`process` opens what everything else is made with, of the settings sections in `settings`: the database, its stores,
what watches over them. `memory` opens the language model, and what searches, reads and summarises the memory;
`speech_models` what hears and speaks. `services` makes of these what rooms share, and their tools; `recipients` says
who gets a part of the conversation. `rooms` opens what runs the rooms, and goes on after a crash with those that there
were. Beside them, `commands` makes the slash commands, and `pages` the web pages, the dashboard and what monitoring
reads.
"""
