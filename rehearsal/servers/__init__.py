"""Local model servers with OpenAI's APIs that can also misbehave on request; each is an async context manager.

`chat` (`chat_wire`, `upstream`), `embeddings`, `speech`, `transcription`, and `realtime` (`realtime_session`,
`realtime_responses`, `realtime_conversation`, `realtime_vad`, `realtime_behaviour`). `language_model` runs llama.cpp.
`loopback`: what the servers share.
"""
