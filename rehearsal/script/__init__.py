"""The files that a person writes: scenarios and their expectations.

`scenario_file` reads a `scenario` with its `expectations` and `server_specs`. `recordings` makes a scenario from a
folder of recordings. `files` reads files and words their mistakes.
"""
