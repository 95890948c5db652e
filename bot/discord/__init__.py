"""The Discord side of the bot. Start with `connection.connected`, which runs the `client`.

- A room's channel: `room_channel` implements its port, `chat` the text channel, with the calls that wait for a press.
  `voice_channels` has what Discord shows of them: who may read, whether the bot can come in, words that people may say.
  `listening_mark` shows that the bot listens. `typed_messages` passes on what people type to the bot. `posting` posts
  messages that answer no command, and `posts` begins, fills and deletes those that change. `voice_presence` notices who
  comes and goes, and what of it the bot has asked for.
- Commands: `commands` has them, on the `command_tree`, which has the views of buttons too. `access` decides who may use
  them, and how often. `answers` writes the replies and embeds.
- Servers: `admission` decides which servers are served, and makes the link that adds the bot.
- The dashboard: `dashboard_access` finds out what somebody may see, and how servers and channels are called.

`endpoint` selects the real Discord or a local one, and knows a wrong token by its form. `refused_requests` logs what
Discord does not take. `live_probe` is `roomtone doctor --live`.
"""
