"""Run the `roomtone` program as a person would: its own process, its own folder, its own environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
# The longest bundled scenario plays two and a half minutes of real time.
RUN_TIMEOUT_S = 420


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """Return an environment in which nothing of the person who tests shows: no token, no key, data in `folder`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ROOMTONE_") and name not in {"DISCORD_TOKEN", "OPENAI_API_KEY"}
    }
    return {
        **kept,
        "ROOMTONE_STORAGE__DATA_DIR": str(folder / "data"),
        "ROOMTONE_MODELS__DIRECTORY": str(REPOSITORY / "data" / "models"),
        "ROOMTONE_ASR__MODEL_DIR": str(REPOSITORY / "data" / "models" / "whisper-base"),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "100",
        **extra,
    }


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of the program ended."""

    status: int
    printed: str
    report: dict[str, Any]

    def expectation(self, name: str) -> dict[str, Any]:
        """Return the report's line on one expectation."""
        found = [line for line in self.report["expectations"] if line["name"] == name]
        assert found, f"{name} is not among {[line['name'] for line in self.report['expectations']]}"
        return dict(found[0])


class Program:
    """One run of `roomtone` with its output in a file; `wait` tells how it ended."""

    def __init__(self, folder: Path, *arguments: str, **extra: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._report = folder / "report.json"
        self.output = folder / "output.txt"
        with self.output.open("wb") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bot", *arguments],
                stdout=sink,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                env={**environment(folder, **extra), "PYTHONPATH": str(REPOSITORY)},
            )

    @classmethod
    def rehearse(cls, folder: Path, *arguments: str) -> Program:
        """Start `roomtone rehearse` with a report."""
        return cls(folder, "rehearse", *arguments, "--report", str(folder / "report.json"))

    @property
    def running(self) -> bool:
        """Return whether the program has not ended yet."""
        return self._process.poll() is None

    def printed(self) -> str:
        """Return what the program has printed so far."""
        return self.output.read_text("utf-8", errors="replace")

    def wait(self) -> Outcome:
        """Wait for the end and return it. A program that does not end is killed and fails the test."""
        try:
            status = self._process.wait(RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"It did not end within {RUN_TIMEOUT_S} s:\n{self.printed()}") from None
        report = json.loads(self._report.read_text("utf-8")) if self._report.exists() else {}
        return Outcome(status, self.printed(), report)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.running:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def interrupt(self) -> None:
        """End it as Ctrl-C does."""
        if self.running:
            self._process.send_signal(signal.SIGINT)
        self._process.wait(60)
