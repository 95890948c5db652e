"""The dashboard: the rooms as they live, the history of sessions, and what the model saw at each reply.

`live` and `live_room` send what happens in the rooms to open pages, each with a `follower`;
`messages` writes all of it as JSON. `history` reads stored sessions. `access` decides whose rooms somebody sees, and
`visible` which words; `discord_login` finds out who somebody is. `service` puts it together behind `bot.web`.
"""
