"""`roomtone bench cluster`: what a call to the recogniser service costs.

`bench` asks `service_process`, which runs Ray (`ray_nodes`) in a network of its own. `processes` reads /proc.
"""
