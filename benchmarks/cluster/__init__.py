"""`roomtone bench cluster`: what the recogniser service costs, what more recognisers bring, and what a bot takes.

Start with `bench`. `service_process` runs Ray (`ray_nodes`) and the service in a network of their own; `bot_process`
runs one bot with some rooms; `processes` reads what they took, and `sizing` calculates machines from it.
"""
