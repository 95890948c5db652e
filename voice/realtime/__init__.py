"""Speech-to-speech over OpenAI's Realtime protocol. The way in is `port`; `protocol` is sans-I/O, `session` runs it."""
