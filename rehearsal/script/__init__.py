"""The files that a person writes: scenarios, written evenings, and their expectations.

`scenario_file` reads a `scenario` with its `expectations` and `server_specs`. `recordings` makes a scenario from a
folder of recordings. `written_evening` reads an evening without sound. `files` reads files and words their mistakes.
"""
