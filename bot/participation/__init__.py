"""When the bot takes part in a conversation, and what that may cost.

Start with `participation`, which belongs to one room. `guild_participation` is how the bot takes part on one server;
`all_guilds` reads it, changes it for all servers, and stores later what could not be stored at once.
`engagement` tracks who is talking with the bot, and how long nobody has spoken. `costs` counts the
last hour's costs, with those of summaries, and `statistics` writes the sentences for /status.
"""
