"""Speech-to-speech over OpenAI's Realtime protocol. Start at `port`. `protocol` is sans-I/O, and `session` runs it.

`connector` keeps a session connected, and `connection` holds one websocket; `availability` decides when the session is
given up and when it is in use again; `pending_inputs`, `reply_queue` and `tool_calls` are what waits in a session.
"""
