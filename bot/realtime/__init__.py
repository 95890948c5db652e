"""Speech-to-speech in a room.

`bridge` (the way in) sends a room's speech to the session and speaks its replies; `items` keeps the session's
conversation in step with the room's memory; `inputs` remembers which sounds were sent; `port` is what a room gives it.
"""
