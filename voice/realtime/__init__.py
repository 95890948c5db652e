"""Speech-to-speech over OpenAI's Realtime protocol. Start at `port`. `protocol` is sans-I/O, and `session` runs it.

`connection` holds one websocket; `availability` decides when the session is given up and when it is in use again;
`error_messages` says what failed.
`reply_queue` and `tool_calls` are what waits in a session, `untranscribed_inputs` is what was
heard in a conversation and has no text yet, and `active_reply` is what is being said.
`session_tools` are the tools that the server takes. `speech_assembler` makes
frames of a reply. `protocol` returns `effects`, and `wire` builds what is sent.
"""
