"""The dashboard: the rooms as they live, the history of sessions, and what the model saw at each reply.

`live` and `live_room` send what happens in the rooms to open pages. `history` reads stored sessions. `access` decides
whose rooms somebody sees, and which words, and writes them as JSON; `discord_login` finds out who somebody is.
`service` puts it together behind `bot.web`.
"""
