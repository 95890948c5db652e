"""Reads the parts of the Dockerfile's language that ours uses, and refuses the others."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from string import Template

_KNOWN = {
    *("CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK"),
    *("RUN", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
}


@dataclass(frozen=True, slots=True)
class DockerStep:
    """One instruction, such as `RUN` with the rest of its line."""

    keyword: str
    text: str


@dataclass(slots=True)
class DockerStage:
    """One `FROM` and the instructions up to the next. `base`: the name of a stage or of an image."""

    name: str
    base: str
    steps: list[DockerStep] = field(default_factory=list)

    def last(self, keyword: str) -> str | None:
        """Return the text of the last such instruction."""
        return next((step.text for step in reversed(self.steps) if step.keyword == keyword), None)


def read(text: str) -> dict[str, DockerStage]:
    """Return the stages by name, in order. Raises `ValueError` for an instruction that this module does not know."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    stages: dict[str, DockerStage] = {}
    for line in filter(None, map(str.strip, joined.splitlines())):
        keyword, _, rest = line.partition(" ")
        if keyword not in _KNOWN:
            raise ValueError(f"this test does not know {keyword}")
        if keyword == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()  # type: ignore[union-attr]
            stages[name] = DockerStage(name, base)
        else:
            stages[name].steps.append(DockerStep(keyword, rest.strip()))
    return stages


def environment(text: str, before: dict[str, str]) -> dict[str, str]:
    """Return the variables after an `ENV` instruction."""
    new = dict(pair.split("=", 1) for pair in shlex.split(text))
    return before | {name: Template(value).substitute(before) for name, value in new.items()}


def cache_mounts(text: str) -> tuple[list[str], str]:
    """Return the targets of a `RUN` instruction's cache mounts, and its command."""
    mounts = re.findall(r"--mount=type=cache,target=(\S+)", text)
    return mounts, re.sub(r"--mount=\S+\s+", "", text)


def exec_form(text: str | None) -> list[str]:
    """Return the words of a `CMD` or `ENTRYPOINT`, which ours write as JSON."""
    words = json.loads(text or "[]")
    assert isinstance(words, list)
    return words
