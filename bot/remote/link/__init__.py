"""The link between a room's process and the gateway process: one websocket for each room.

`message_link` asks, tells, and gives what comes in to `handlers`. The gateway process listens with `listener`, at an
`address`. A room's process connects with `gateway_link`, as often as the link is lost, and says in `hello` who it is.

On one machine `link_file` says where the listener is, and has the token, which both sides prove (`token_proof`).
Between machines everything is encrypted (`encrypted_port`, `link_encryption`). `streams` are websockets beside the
link, for pictures.
"""
