"""Scripted people in a voice channel, with a voice client of their own.

`person` is the way in: it plays a `clip` (`pacing`, `voiced`) and keeps what it receives (`received_speech`).
`voice_link` connects it (`voice_access`, `media_socket`, `tasks`); `voice_session`, `dave` and `rtp` are the protocol,
without I/O. `screen_share`: a person's screen share.
"""
