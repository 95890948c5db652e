"""Scripted people in a voice channel, with their own voice client.

`person` is the entry point. A person plays a `clip` and keeps the speech it receives (`received_speech`).
`voice_connection` does the I/O of the voice connection (`media_socket`). `voice_session` and `dave` implement
the protocol without I/O.
"""
