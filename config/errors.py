"""What is wrong with a configuration."""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration cannot be used. `problems` holds every mistake at once, one plain sentence or two each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
