"""The error of this package."""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration cannot be used. `problems` has one or two plain sentences for each mistake, all at once."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
