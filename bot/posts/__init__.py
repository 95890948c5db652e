"""What the bot posts into the chat of a voice channel: its notice, the message that shows how a session goes, its
recap, and what it writes down. `renewal` sees that what was forgotten goes from them.
"""
