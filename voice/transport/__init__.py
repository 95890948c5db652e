"""Discord's voice connection in both directions. Start at `connection.DiscordVoiceConnection`; README.md has a picture
and the reasons.

- In: `receiver` takes datagrams (`rtp`, `decrypt`), finds their speaker (`roster`) and gives each frame to one
  of the `speaker_streams`. A `speaker_stream` makes sound of it (`jitter`, `opus`, `talkspurt_clock`), and `handover`
  brings the sound to the event loop as `audio_events`. `counters` counts each packet.
- Out: `outgoing` encodes and encrypts frames, and `paced_sender` sends them in time from `paced_sender_process`.
- Connection: `connector` joins, with what `discord_gateway` gives it. `watchdog` and
  `keepalive` notice failures, `reconnection` decides what follows; `connection_events` tell of it.
- `private` is the only place that touches private parts of discord.py; it calls the `receiver`.
"""
