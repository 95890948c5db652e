"""The interface between a room and its voice channel: `port` (channel, connection, chat) and `participants`.

`notice_queue` writes sentences into the chat; `markdown` makes harmless what people said, for a message of the bot.
"""
