"""`roomtone bench cluster`: what the recogniser service costs, what it recognises at once, and what a bot takes.

`bench` asks `service_process`, which runs Ray (`ray_nodes`) in a network of its own. `bot_process` runs one bot with
some rooms. `processes` reads from /proc what they took.
"""
