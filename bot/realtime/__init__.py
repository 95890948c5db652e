"""Speech-to-speech in a room.

Start with `bridge`, which sends a room's speech to the session and speaks its replies. `items` keeps the session's
conversation in step with the room's memory; `inputs` remembers which sounds were sent; `reply_tools` runs the tool
calls of a reply; `port` is the interface to the room.
"""
