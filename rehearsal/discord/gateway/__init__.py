"""The main gateway: bots identify, receive the guild's events, and ask for voice.

`gateway` handles their messages, and `sessions` has the bots' sessions of all guilds.
"""
