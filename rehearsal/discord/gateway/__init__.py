"""The main gateway: bots identify, receive the guild's events, and ask for voice.

`gateway` handles their messages. `session` is one bot's session, and `session_table` has those of all guilds.
"""
