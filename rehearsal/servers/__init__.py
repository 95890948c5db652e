"""Local model servers with OpenAI's APIs that can also misbehave on request. Each is an async context manager.

The servers are `chat` (with `chat_wire`), `speech`, `transcription`, and `realtime` (with `realtime_session` and
`realtime_behaviour`). `loopback` is what they are made of.
"""
