"""Rooms in processes of their own: the messages between them and the process with the token, the gateway process.

Facts are pushed and acts are asked (docs/decisions/0024-rooms-and-fencing.md). Start with `remote_room`, the room as
the gateway process has it, and `room_host`, which runs it in its process.

- Both sides: `link` carries `messages` and hands them to `handlers`; `hello` admits. The `*_messages` modules say
  what is asked and told, `wire_text` and `wire_error` how sentences and errors travel.
- Gateway process: `listener` (with `encrypted_port`, `link_encryption`) takes links. `room_processes` finds a seat for
  each room (`room_process`, `room_seat`, `spare_pool`, `room_child`, `placement`). `remote_room` has it from then on
  (`remote_participation`, `room_choices`, `member_moves`), or again after a restart (`adoption`, `adopted_room`).
- Room's process: `gateway_link` keeps its link, `room_seats` its seats, one `room_host` for each room;
  `room_publisher`, `room_log` and `room_figures` tell how it is. `room_machine` starts such processes on another
  machine.

What a room uses of the other process comes in pairs. `served_place`, `served_gateway` and `served_screens` are in the
process that has the thing, `remote_place`, `remote_gateway` and `remote_screens` stand for it in the other one. A
module `told_*` keeps what the other process has told: `told_guild` in the room's process, `told_memory` and
`told_log` in the gateway process.
"""
