"""The bot's stay in one voice channel: the life of the room, and the conversation in it.

`rooms` has the rooms of all guilds, and `auto_joiner` brings the bot by itself. A `guild_room` runs one `session` after
the other, and tells whoever called the bot that one is open. A `session` joins one channel, with one stored session: it
has the connection and the tasks (`channel_work`, `notice`, `room_check`, `other_processes`, `live_message`,
`transcript_writer`), and its `conversation` hears and answers. `other_processes` notices that another process has the
server now, or has forgotten somebody. `posted_messages` posts what a session was about, takes forgotten words out of
it, and deletes what was posted of a session that is gone. `attendance` records who was there when.

What is decided without a clock, a task or a log line is in modules of its own: `lifecycle` (what becomes of a room that
is moved, ends or crashes), `room_troubles`, `listen_only` (whether a session is only written down) and `endings` (why a
room ends). What people read is in `notice`, `room_troubles`, `lifecycle` and `room_status`.

All rooms share `services`; `guild_policy` decides how a guild's prompts are built, `server_voice` which voice it has.
"""
