"""Speech-to-speech over OpenAI's Realtime protocol. Start at `port`. `protocol` is sans-I/O, and `session` runs it.

`connection` holds one websocket; `pending_inputs`, `reply_queue` and `tool_calls` are what waits in a session.
"""
