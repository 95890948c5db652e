"""The error that reading the configuration raises."""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration cannot be used. `problems` lists all mistakes, each described in one or two plain sentences."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
