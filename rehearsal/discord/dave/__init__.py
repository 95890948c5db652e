"""DAVE, Discord's end-to-end encryption of voice: the delivery service of one voice channel.

`delivery` is a state machine without a socket, from events to effects on its `group`. `mls` reads and writes its
messages.
"""
