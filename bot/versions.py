"""Which versions of what runs here, for a report: nothing in it is a name that somebody has given."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGES = ("roomtone", "discord.py", "davey", "PyNaCl", "faster-whisper", "ctranslate2")
_CPU_INFO = Path("/proc/cpuinfo")


def versions() -> Mapping[str, str]:
    """Return the version of each part, by its name."""
    # Whoever builds a kernel may name it.
    kernel = "".join(re.findall(r"^[\d.]+", platform.release()))
    return {
        **{name: metadata.version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "system": f"{platform.system()} {kernel} {platform.machine()}",
        "cpu": f"{cpu_kind()}, {os.cpu_count()} cores",
    }


def cpu_kind() -> str:
    """Return what the processor calls itself."""
    told = _CPU_INFO.read_text("utf-8") if _CPU_INFO.is_file() else ""
    found = re.findall(r"^model name\s*:\s*(.+)$", told, re.MULTILINE)
    return found[0] if found else platform.processor() or "unknown"
