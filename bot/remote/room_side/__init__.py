"""The room's process's side: runs rooms for a gateway process.

`room_runner` opens the seats of the process and runs one `room_host` in each, which takes a room from the gateway
process, runs it, and hands it over in a pause in speech (`handover_pause`, `sound_watch`).

`remote_place` and `remote_gateway` stand for the voice channel and Discord's main gateway, `replicated_guild` for the
stores of the server's choices. `served_screens` gives the gateway process the shared screens. `room_publisher` tells
how the room is, `room_log` its log lines, and `room_figures` what the process measures.
"""
