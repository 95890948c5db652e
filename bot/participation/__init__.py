"""When the bot takes part in a conversation, and what that may cost.

Start with `participation`, which belongs to one room. `guild_participation` is how the bot takes part on one server,
with `session_consent` for who agreed to be heard; `all_guilds` reads it and changes it for all servers. What could not
be stored of that, `waiting_choices` and `waiting_opt_outs` store later; `opt_out_file` keeps the opt-outs of it over a
restart.
`engagement` tracks who is talking with the bot, `person_names` who else is called, `quiet_timer` when the bot may speak
first, `costs` the last hour's costs, with those of summaries (`metered_completion`). `reply_control` is what stops or
begins replies; `statistics` writes the sentences for /status, and `notices` those about the bot's own silence.
"""
