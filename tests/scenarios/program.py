"""Run the `roomtone` program as a user would: as its own process, with its own folder and environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

REPOSITORY = Path(__file__).parents[2]
# The longest bundled scenario takes two and a half minutes of real time.
RUN_TIMEOUT_S = 420


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """Return an environment without the tester's tokens, keys and settings. The program's data goes into `folder`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ROOMTONE_") and name not in {"DISCORD_TOKEN", "OPENAI_API_KEY"}
    }
    return {
        **kept,
        "ROOMTONE_STORAGE__DATA_DIR": str(folder / "data"),
        "ROOMTONE_MODELS__DIRECTORY": str(REPOSITORY / "data" / "models"),
        "PYTHONUNBUFFERED": "1",
        **extra,
    }


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How a run of the program ended."""

    status: int
    printed: str
    report: dict[str, Any]

    def expectation(self, name: str) -> dict[str, Any]:
        """Return the report's entry for one expectation."""
        found = [line for line in self.report["expectations"] if line["name"] == name]
        assert found, f"{name} is not among {[line['name'] for line in self.report['expectations']]}"
        return dict(found[0])


class Program:
    """One run of `roomtone`, with its output in a file. `wait` returns how it ended."""

    def __init__(self, folder: Path, *arguments: str, **extra: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # With a settings file in its folder the program does not look for the tester's own.
        (folder / "roomtone.toml").touch()
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
        """Start `roomtone rehearse`, which writes a report."""
        return cls(folder, "rehearse", *arguments, "--report", str(folder / "report.json"))

    @property
    def running(self) -> bool:
        """Return whether the program is still running."""
        return self._process.poll() is None

    def printed(self) -> str:
        """Return what the program has printed so far."""
        return self.output.read_text("utf-8", errors="replace")

    def wait(self) -> ProgramOutcome:
        """Wait for the program to end and return the outcome. If it does not end, it is killed and the test fails."""
        try:
            status = self._process.wait(RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"It did not end within {RUN_TIMEOUT_S} s:\n{self.printed()}") from None
        report = json.loads(self._report.read_text("utf-8")) if self._report.exists() else {}
        return ProgramOutcome(status, self.printed(), report)

    def kill(self) -> None:
        """Kill the program without warning, as a power failure would."""
        if self.running:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def interrupt(self) -> None:
        """Interrupt the program as Ctrl-C does, and wait until it has ended."""
        if self.running:
            self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE_S)
