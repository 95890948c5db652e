"""What a room needs of a voice channel, whatever provides it: `port` (channel, link, chat) and `participants`."""
