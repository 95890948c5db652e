"""Hearing and speaking: from Discord's packets to text, and from text to Discord's packets.

Rooms: `transport` (Discord's voice connection), `listening` (voice activity, endpointing, turn detection), `asr`
(speech recognition), `speaking` (text normalisation, voices, playback, barge-in), `realtime` (speech-to-speech),
`screen` (pictures of shared screens). The way in is each room's `port` and settings; `transport.link.VoiceLink` joins a
channel. Nothing here imports `bot` or `compaction`.
"""
