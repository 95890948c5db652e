"""Speech-to-speech over OpenAI's Realtime protocol. Start at `port`. `protocol` is sans-I/O, and `session` runs it."""
