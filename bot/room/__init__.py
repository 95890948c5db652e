"""The bot's stay in one voice channel: hearing, turns, replies, and the life of the room.

Start with `supervisor`, which opens and ends a `guild_room` for each guild; `auto_joiner` brings the bot by itself. A
`guild_room` runs one `room` after the other. A `room` owns one session; its `joined_channel` has the connection and the
tasks (`announcer`, `claim_watch`, `live_message`, `transcript_writer`), its `conversation` hears and answers. The
conversation owns `hearing` (with `transcriber` and `eager_recognition`), `turn_taking`, `turn_recorder`,
`membership_recorder`, `prompt`, `speaking` (with `preemptive_reply`, `speech_ahead` and `fixed_sentences`), `barge_in`
and `reply_recorder`; `conversation_parts` makes them, `conversation_status` tells how they are.

What is decided without a clock, a task or a log line is in modules of its own: `auto_join`, `backlog`,
`catch_up_offers`, `membership`, `restarts`, `room_faults`, `session_limits`, `sound_delay`.

All rooms share `services`; `guild_policy` decides how a guild's prompts are built; `tasks` reports a task that was
cancelled by mistake.
"""
