"""Rooms in processes of their own: the messages between them and the process with the token, the gateway process.

Facts are pushed and acts are asked (docs/decisions/0024-rooms-and-fencing.md). A folder is on one side, or on both:

- `messages`, both sides: what is asked and told, and how it is written.
- `link`, both sides: the websocket that carries messages. The gateway process listens, a room's process connects.
- `processes`, the gateway process: starts processes for rooms, and finds a seat in one for each room.
  `processes.room_machine` does the first for a gateway process on another machine.
- `gateway_side`, the gateway process: a room that runs elsewhere, for supervisor, commands, dashboard and share pages.
- `room_side`, the room's process: runs the room, and gives it the voice channel and the server's choices.

Start with `gateway_side.remote_room`, the room as the gateway process has it, and `room_side.room_host`, which runs it.

What one process uses of the other comes in pairs. A module `served_*` is in the process that has the thing, and
`remote_*` stands for it in the other one: `gateway_side.served_place` and `room_side.remote_place`, for example. A
module `reported_*` keeps what the room's process has reported.
"""
