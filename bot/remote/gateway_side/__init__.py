"""The gateway process's side: rooms that run in other processes, for whoever deals with rooms here.

`remote_room` has one for the supervisor (`open_request` begins it), with what it tells of itself (`reported_room`, and
`reported_memory` for the dashboard), what commands change (`remote_participation`, `room_choices`), who comes and goes
(`member_moves`), and, for a room that ran on while this process was away, what each has to tell (`adopted_room`). All
of them share the `gateway_parts`. `room_fences` fences lost rooms off.

`served_place` and `served_gateway` give the room its voice channel and the main gateway. `remote_screens` and
`remote_page` show its shared screens. `reported_log` writes log lines of other machines.
"""
