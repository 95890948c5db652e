"""The Discord side of the bot. Start with `connection.connected`, which runs the `client`.

- A room's channel: `place` implements its port, `chat` the text channel, `entry` decides which channels can be entered,
  `listening_mark` shows that the bot listens, `consent_buttons` ask people to agree. `typed_messages` passes on what
  people type to the bot. `posting` posts messages that answer no command, and `threads` those with what is said.
  `voice_presence` notices who comes and goes, and what of it the bot has asked for. `occasions` finds words for the
  recogniser, `digest_embed` shows what a session was about.
- Commands: `commands` has them, on the `command_tree`. `access` decides who
  may use them, and how often. `audience` finds out what `bot.readers` has to know of somebody. `answers` writes the
  replies; `failures` has the views of buttons, and the replies to what broke.
- Servers and shards: `admission` decides which servers are served, `invite` makes the link that adds the bot.
  `shard_connections` is about large bots.
- The dashboard: `dashboard_access` finds out what somebody may see, `place_names` how servers and channels are called.

`endpoint` selects the real Discord or a local one, `bot_token` knows a wrong token by its form, `request_errors` are
what a request can fail with. `live_probe` is `roomtone doctor --live`.
"""
