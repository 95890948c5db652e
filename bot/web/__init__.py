"""The bot's own web pages: a small server, and the page on which people share a screen."""
