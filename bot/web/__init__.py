"""The bot's web server and the page on which people share a screen.

`server` serves the files in `static` and the web socket, `socket` speaks its protocol, `security` has the checks and
headers, `port` is what `bot.screen` implements.
"""
