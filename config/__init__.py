"""The operator's settings: combined from all packages, read from files and the environment, and documented.

`schema` combines the packages' settings classes. `location` finds the operator's folder. `load` reads and merges the
sources. `problems` describes mistakes in plain sentences. `document` generates `docs/settings.md`
from the schema. Start at `load.load()`.
"""


class ConfigError(Exception):
    """The configuration cannot be used. `problems` lists all mistakes, each described in one or two plain sentences."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
