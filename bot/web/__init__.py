"""The bot's web server: the page on which people share a screen, the dashboard, and what monitoring asks.

`server` serves the files in `static` (translated by `page_texts`), what monitoring asks, the addresses of
`login_routes` and `dashboard_routes`, and the web socket, whose protocol is `socket`. `security` and `connection`
decide who may do what. `watching` serves the /watch commands; what the pages read is `bot.dashboard`'s.
"""
