"""Rooms in processes of their own: the messages between them and the process with the token, the gateway process.

Facts are pushed and acts are asked (docs/decisions/0024-rooms-and-fencing.md).
"""
