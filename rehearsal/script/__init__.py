"""The files that a person writes: scenarios, written evenings, and their expectations.

`scenario_file` reads a `scenario` with its `expectations`, `server_specs` and history (`history_file`). `recordings`
makes a scenario from a folder of recordings. `written_evening` reads an evening without sound. `file_errors` makes the
messages about mistakes in these files.
"""
