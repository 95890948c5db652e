"""What an operator can choose, in one place: assembled, read from files and environment, and explained.

`schema` puts the packages' settings together, `sources` reads files and variables, `load` lays them over one
another, `problems` says in plain sentences what is wrong, `document` writes `default.toml` out of the schema.
"""
