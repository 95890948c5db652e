"""When the bot takes part in a conversation, and what that may cost.

`participation` (the way in) is one room's; `guild_participation` is every guild's, with what its members chose.
`engagement` knows who is talking with the bot, `costs` what the last hour cost, `statistics` the sentences for /status.
"""
