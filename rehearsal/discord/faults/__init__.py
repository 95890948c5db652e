"""The faults that a test, or a person at a terminal, can order by name.

`injector` has those of voice and runs all of them; `services` has those of the main gateway, REST and interactions.
"""
