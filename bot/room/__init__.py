"""The bot's stay in one voice channel: hearing, turns, replies, and the life of the room.

Start with `supervisor`, which runs a `room` for each guild; a `room` owns one session and its `conversation`. The
conversation owns `hearing` (with `eager_recognition`), `turn_recorder`, `prompt`, `preemptive_reply` (with
`speech_ahead`), `barge_in` and `reply_recorder`. All rooms share `services`; `guild_policy` decides how a guild's
prompts are built; `tasks` reports a task that was cancelled by mistake.
"""
