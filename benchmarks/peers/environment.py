"""A separate Python environment for another library, with exact versions.

The library's requirements must not conflict with Roomtone's, and a benchmark must not change what is installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.errors import PeerError

if TYPE_CHECKING:
    from benchmarks.progress import Progress

FOLDER = Path(__file__).parent
# An installation downloads hundreds of megabytes, perhaps over a slow connection.
INSTALL_TIMEOUT_S = 1_800.0
_READY = "ready"


@dataclass(frozen=True, slots=True)
class PeerLibrary:
    """A library: its name in reports, its requirements file, and the module that drives it."""

    name: str
    requirements: Path
    module: str


async def peer_python(library: PeerLibrary, parent: Path, progress: Progress) -> Path:
    """Return the Python interpreter of the library's environment below `parent`, and create the environment if needed.

    Raises PeerError with the reason if the environment cannot be created.
    """
    digest = hashlib.sha256(library.requirements.read_bytes()).hexdigest()[:12]
    place = parent / f"{library.name}-{digest}-{sys.version_info.major}.{sys.version_info.minor}"
    python = place / "bin" / "python"
    if (place / _READY).is_file():
        return python
    progress.say(f"installing {library.name} into an environment of its own ({place})")
    await _run([sys.executable, "-m", "venv", "--clear", str(place)], library)
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    await _run([*install, "--requirement", str(library.requirements)], library)
    (place / _READY).touch()
    return python


async def _run(command: list[str], library: PeerLibrary) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(INSTALL_TIMEOUT_S):
            _, complaints = await process.communicate()
    except BaseException as error:
        # Ctrl-C reaches it too.
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise PeerError(f"{library.name} was not installed within {INSTALL_TIMEOUT_S:g} seconds.") from error
        raise
    if process.returncode:
        lines = [line for line in complaints.decode("utf-8", "replace").splitlines() if line.strip()]
        reasons = [line for line in lines if "ERROR" in line] or lines or ["no reason given"]
        raise PeerError(f"{library.name} could not be installed: {reasons[-1][:200]}")
