"""The interface between a room and its voice channel: `port` (channel, link, chat) and `participants`."""
