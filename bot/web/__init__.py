"""The bot's web server: the page on which people share a screen, the dashboard, and what monitoring asks.

`server` serves the files in `static` (translated by `page_texts`), the addresses of `login_routes`, `dashboard_routes`
and `probes`, and the web socket, whose protocol is `socket`. `security`, `connection`, `refusals` and
`viewer` decide who may do what. `port` and `dashboard_port` are what `bot.screen` and `bot.dashboard` implement.
"""
