"""What the gateway process and a room's process ask and tell each other, and how it is written.

`frames` writes a message as text and checks what comes in. `wire_text` and `wire_error` are sentences and errors in
messages, so that both can be translated and raised in the other process. The modules `*_messages` have a subject each:
the room itself (`room_messages`, with `participation_state` and `event_messages`), its voice channel
(`place_messages`), its voice connection (`voice_messages`), shared screens (`screen_messages`), log lines
(`log_messages`) and figures (`figure_messages`).
"""
