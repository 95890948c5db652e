"""`roomtone bench cluster`: what the recogniser pool costs, and what more recognisers bring.

Start with `bench`. It measures the pool in a process of its own (`pool_process`), and rooms in processes on `nodes`
(`rooms`), with what `processes` took. `figures` and `tables` tell what was measured; `sizing` calculates how many
machines a number of rooms would need.
"""
