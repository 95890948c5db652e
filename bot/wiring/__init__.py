"""Builds the running bot's parts from the settings; `bot.app` composes them.

`bot_process` opens what everything else is made with. `rooms` opens what runs the rooms: in this process, with the
`services` that they share, or in processes of their own (`room_processes`, and `room_process` at the other end).
`commands` makes the slash commands. `recogniser` and `speech_models` load the models for hearing and speaking.
`memory`, `summariser`, `screens` and `tools` build the parts of those names. `settings` lists the settings sections.
"""
