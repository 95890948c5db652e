"""DAVE, Discord's end-to-end encryption of voice: the delivery service of one voice channel.

`delivery` is a state machine without a socket, from events to `effects`. `mls` reads and writes its messages.
"""
