"""The operator's settings: combined from all packages, read from files and the environment, and documented.

`schema` combines the packages' settings classes. `location` finds the operator's folder, and `folder_trust` decides
whether it may be used. `sources` reads files and environment variables, and `load` merges them. `problems` describes
mistakes in plain sentences, and `near_misses` finds misspelt variables. `document` generates `default.toml` and
`docs/settings.md` from the schema. Start at `load.load()`.
"""
