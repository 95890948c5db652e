"""Speech-to-speech in a room.

Start with `bridge`, which sends a room's speech to the session, speaks its replies and runs their tool calls. `items`
keeps the session's conversation in step with the room's memory, and remembers which sounds were sent; `port` is the
interface to the room.
"""
