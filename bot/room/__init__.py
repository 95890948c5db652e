"""One voice channel that the bot is in: hearing, turns, replies, and the life of the room.

`supervisor` (the way in) runs a `room` for each guild; a `room` owns one session and its `conversation`. The
conversation owns `hearing` (with `eager_recognition`), `turn_recorder`, `prompt`, `preemptive_reply`, `barge_in` and
`reply_recorder`. `services` is what all rooms share; `guild_policy` is how a guild's prompts are built; `tasks` reports
a task that was cancelled by mistake.
"""
