"""When the bot takes part in a conversation, and what that may cost.

Start with `participation`, which belongs to one room. `guild_state` has how the bot takes part on each server, reads
it and stores what people choose. `engagement` tracks who is talking with the bot, and how long nobody has spoken.
`costs` counts the last hour's costs, with those of summaries, and `statistics` writes the sentences for /status.
"""
