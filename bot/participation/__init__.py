"""When the bot takes part in a conversation, and what that may cost.

Start with `participation`, which belongs to one room. `guild_participation` holds every guild's choices. `engagement`
tracks who is talking with the bot, `costs` the last hour's costs; `statistics` writes the sentences for /status.
"""
