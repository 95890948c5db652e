"""Builds the running bot's parts from the settings; `bot.app` composes them.

`bot_process` opens what everything else is made with (`process_parts`, of the settings sections in `settings`).

- Rooms: `rooms` opens what runs them, with the `services` that they share. After a crash, `session_rejoining` goes on
  with what there was.
- Models: `recogniser` and `speech_models` load those for hearing and speaking, `recollection` the language models, with
  the memory search, and `summariser` what folds. `recipients` says who gets a part of the conversation.
- What rooms are made of: `memory`, `screens` and `tools` build the parts of those names. `room_forgetting` lets open
  rooms drop what they hold of somebody.
- Beside them: `commands` makes the slash commands, `dashboard` and `monitoring` what shows how the rooms are.
"""
