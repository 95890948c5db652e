"""Hearing and speaking: converts Discord's packets to text, and text to Discord's packets.

Subpackages: `transport` (Discord's voice connection), `listening` (voice activity, endpointing, turn detection), `asr`
(speech recognition), `speaking` (text normalisation, voices, playback, barge-in), `realtime` (speech-to-speech),
`screen` (pictures of shared screens). Start at each subpackage's `port` and settings;
`transport.connection.DiscordVoiceConnection` joins a channel. This package never imports `bot` or `compaction`.

What they share: `audio` (the sound format), `errors`, `queue_figures`, `token_bucket`; for services, `endpoint` with
`endpoint_settings`, `server_keys`, `circuit_breaker` and `retry_pause`; for tasks,
`cancellation` and `shielded`; for threads, `daemon_thread`.
"""

import os

# From 1.29 on, ONNX Runtime sends events about models and the machine to its makers and keeps an identifier, unless
# this is set before it starts (Privacy.md in its wheel). Processes that we start inherit it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
