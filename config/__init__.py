"""The settings of an operator: put together from the packages, read from files and the environment, and documented.

`schema` puts the packages' settings together. `sources` reads files and variables, `load` lays them over one another.
`problems` says in plain sentences what is wrong, `retired` what became of keys that are gone. `document` writes
`default.toml` and `docs/settings.md` out of the schema. The way in is `load.load()`.
"""
