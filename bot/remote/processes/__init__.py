"""The processes that run rooms, as the gateway process has them.

`room_processes` finds a seat for each room (`room_seat`), in the process that `placement` chooses. A `seated_process`
is a child of the gateway process (`room_child`, some of them loaded in advance by `spare_pool`) or of another machine,
where `room_machine` starts it. `adoption` takes back rooms that ran on while the gateway process was away.
`known_machines` tells how loaded each machine is, and `machine_losses` whether one has failed.
"""
