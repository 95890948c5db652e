"""What a check of `roomtone doctor` found. Checks change nothing and never raise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The result of a check. Only `MISSING` keeps Roomtone from running."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `remedy`: what to do, empty if nothing."""

    name: str
    status: Status
    detail: str
    remedy: str = ""

    @classmethod
    def told(cls, name: str, status: Status, sentences: object) -> Finding:
        """Return what an error or a notice tells: its first sentence, and the others as the remedy."""
        detail, _, remedy = str(sentences).partition(". ")
        return cls(name, status, detail, remedy)


def written_address(host: str, port: int) -> str:
    """Return an address as it stands in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
