"""The operator's settings: combined from all packages, read from files and the environment, and documented.

`schema` combines the packages' settings classes. `location` finds the operator's folder. `load` reads and merges the
sources. `problems` describes mistakes in plain sentences. `document` generates `docs/settings.md`
from the schema. Start at `load.load()`.
"""
