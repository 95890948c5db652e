"""Speech-to-speech over OpenAI's Realtime protocol. Start at `port`. `protocol` is sans-I/O, and `session` runs it.

`connection` holds one websocket and says what failed; `availability` decides when the session is given up and when it
is in use again. `reply_queue` is what waits in a session, `untranscribed_inputs` is what was heard in a conversation
and has no text yet, and `active_reply` is what is being said. `session_tools` are the tools that the server takes, and
how one is run. `speech_assembler` makes frames of a reply. `protocol` returns `effects`, and `wire` builds what
is sent.
"""
