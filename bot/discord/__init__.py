"""The Discord side of the bot. Start with `connection.connected`, which runs the `client`.

- A room's channel: `place` implements its port, `chat` the text channel, `stage` asks to speak in stage channels,
  `entry` decides which channels can be entered, `listening_mark` shows that the bot listens, `consent_buttons` ask
  people to agree. `changes` and `voice_presence` notice who comes and goes.
- Commands: `commands` has them, on the `command_tree`, which `command_registration` tells Discord. `access` decides who
  may use them, `audience` whose channels somebody may read, `cooldowns` how often. `answers` writes the replies, and
  `failures` those to a command that broke.
- Servers and shards: `admission` decides which servers are served, `invite` makes the link that adds the bot.
  `shard_choice` and `shard_losses` are about the connections of large bots.

`endpoint` selects the real Discord or a local one. `live_probe` is `roomtone doctor --live`.
"""
