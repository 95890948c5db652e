"""The bot's stay in one voice channel: the life of the room, and the conversation in it.

`rooms` has the rooms of all guilds, and `auto_joiner` brings the bot by itself. A `guild_room` runs one `session` after
the other, and tells whoever called the bot that one is open. A `session` joins one channel, with one stored session:
its `stay` has the connection and the tasks (`notice`, `other_processes`, `posted_messages`, `transcript_writer`), and
its `conversation` hears and answers. `other_processes` notices that another process has the server now, or has
forgotten somebody. `posted_messages` shows how a session goes, posts what it was about, takes forgotten words out of
it, and deletes what was posted of a session that is gone. `attendance` records who was there when.

What is decided without a clock, a task or a log line is in modules of its own: `lifecycle` (what becomes of a room that
is moved, ends or crashes), `endings` (why a room ends) and `room_status` (what is wrong there). What people read is in
`notice`, `lifecycle`, `endings`, `room_status` and `posted_messages`.

All rooms share `services`; `server_voice` decides which voice a server has.
"""
