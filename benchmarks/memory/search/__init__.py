"""Searches in a conversation, and what they find of the facts in it.

`roomtone_search` is the bot's own search, `retrieval` the interface and a plain search to compare with.
"""
