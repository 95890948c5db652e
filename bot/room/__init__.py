"""The life of the bot in voice channels: who has it come and go, and one stay in one channel.

`rooms` has the rooms of all guilds, and `auto_joiner` brings the bot by itself. A `guild_room` runs one `room` after
the other, and tells whoever called the bot that one is open. A `room` joins one channel, with one stored session, and
runs what `assemble` makes of it; `room_check` looks at it every few seconds. `bot.conversation` hears and answers
there, and `bot.posts` has what is written into its chat. `watches` notices that another process has the server now, or
has forgotten somebody. `membership` makes turns of who comes and goes, and `attendance` records who was there when.

What is decided without a clock, a task or a log line is in modules of its own: `lifecycle` (what becomes of a room that
is moved, ends or crashes), `leaving` (why a room ends, and when it does by itself) and `room_status` (what is wrong
there). What people read is in `lifecycle`, `leaving` and `room_status`.
"""
