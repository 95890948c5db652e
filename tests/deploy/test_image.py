"""The Dockerfile's steps, run in an empty root, end in a bot that works read-only and without rights.

No container engine is needed, and none has built the image (docs/operations.md): Debian's packages and this Python
stand in for the base image.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import pytest

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from tests.deploy import bare_root, dockerfile
from tests.deploy.image import Builder, Image, run, start
from tests.free_port import free_port
from tests.patience import PATIENCE_S
from tests.scenarios.program import REPOSITORY
from tests.uv import uv_program

pytestmark = pytest.mark.slow

TEXT = (REPOSITORY / "Dockerfile").read_text("utf-8")
STAGES = dockerfile.read(TEXT)
# The CUDA libraries are 2 GB. This variable has its target built too.
CUDA = "ROOMTONE_TEST_CUDA_IMAGE"


def test_every_step_is_understood_and_copies_what_exists() -> None:
    """The Dockerfile copies only paths of the repository that `.dockerignore` lets through, and ends in `cpu`."""
    sent = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    copied = {
        word
        for stage in STAGES.values()
        for step in stage.steps
        if step.keyword == "COPY" and "--from" not in step.text
        for word in step.text.split()[:-1]
    }
    assert copied == sent
    assert [name for name in copied if not (REPOSITORY / name).exists()] == []
    assert list(STAGES)[-1] == "cpu"


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_an_image_runs_without_rights(target: str) -> None:
    """Each target is for a user who is not root, by number, as its last step."""
    steps = STAGES[target].steps
    assert steps[-1].keyword == "USER"
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", steps[-1].text)


def test_the_lock_file_has_the_cuda_libraries() -> None:
    """`uv sync --group cuda` installs what the recogniser loads: cuBLAS of CUDA 12 and cuDNN 9."""
    locked = tomllib.loads((REPOSITORY / "uv.lock").read_text("utf-8"))["package"]
    versions = {each["name"]: each["version"].split(".")[0] for each in locked if "version" in each}
    assert (versions["nvidia-cublas-cu12"], versions["nvidia-cudnn-cu12"]) == ("12", "9")
    assert "--group cuda" in TEXT


def _ready(port: str) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=4) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False


def _stop(started: subprocess.Popen[str]) -> None:
    """Send SIGTERM to the container's first process, as an engine does."""
    [child] = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text("utf-8").split()
    os.kill(int(child), signal.SIGTERM)


def _quick_place() -> str | None:
    """Return a file system in memory if there is one with room, else None: writing and deleting 40,000 files on a busy
    disk takes minutes.
    """
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 6_000_000_000
    return str(memory) if roomy else None


def uv_cache() -> Path:
    """Return the folder in which uv keeps what it has downloaded."""
    shown = subprocess.run([uv_program(), "cache", "dir"], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    return Path(shown.stdout.strip())


WITH_CUDA = pytest.param("cuda", marks=pytest.mark.skipif(CUDA not in os.environ, reason=f"2 GB; set {CUDA}"))


@pytest.fixture(scope="module", params=["cpu", WITH_CUDA])
def image(request: pytest.FixtureRequest) -> Iterator[Image]:
    """A target of the Dockerfile, built in a folder."""
    if why := bare_root.obstacle():
        pytest.skip(why)
    cache = uv_cache()
    with TemporaryDirectory(prefix="roomtone-image-", dir=_quick_place()) as place:
        yield Builder(STAGES, Path(place), cache).build(request.param)


@pytest.fixture(scope="module")
def volume(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A volume with the models of this checkout. It belongs to the image's user, as /app/data in the image does."""
    data = tmp_path_factory.mktemp("volume") / "data"
    shutil.copytree(REPOSITORY / "data" / "models", data / "models")
    subprocess.run(["chown", "--recursive", image.user, data], check=True)
    data.chmod(0o700)
    return data


def test_the_command_works_where_only_the_data_can_be_written(image: Image, volume: Path) -> None:
    """Version and doctor answer. The user is not root, writes into the volume alone, and gains no rights. Every
    compiled library loads, although the base image lacks much of what a developer's machine has.
    """
    modules = (
        "av ctranslate2 cv2 cryptography davey faster_whisper hibari nacl onnxruntime PIL piper psycopg rapidocr "
        "tiktoken"
    )
    tried = (
        "id -u; for place in /app /app/.venv /etc /home/roomtone /app/data; do touch $place/new && echo $place; done"
    )
    script = (
        f"{tried}; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status; "
        f"roomtone --version; python -c 'import voice, {modules.replace(' ', ', ')}; print(\"loaded\")'; "
        "roomtone doctor --json"
    )
    ran = run(image, volume, "sh", "-c", script)
    assert ran.returncode == 0, ran.stdout
    out, _, doctor = ran.stdout.partition("loaded\n")
    assert out.startswith("10001\n"), out
    assert [line for line in out.splitlines() if line.startswith("/")] == ["/app/data"]
    assert re.findall(r"(CapEff|CapBnd|NoNewPrivs):\s+(\d+)", out) == [
        ("CapEff", "0" * 16),
        ("CapBnd", "0" * 16),
        ("NoNewPrivs", "1"),
    ]
    assert re.search(r"^roomtone \d+\.\d+\.\d+\n\Z", out, re.MULTILINE), out
    findings = {each["name"]: each for each in json.loads(doctor)["findings"]}
    assert [name for name, each in findings.items() if each["status"] == "missing"] == []
    assert findings["data"]["detail"].startswith("/app/data"), findings["data"]


def test_there_are_no_developers_tools(image: Image) -> None:
    """Neither uv, nor its cache, nor a compiler, nor the developers' libraries."""
    names = ("cc", "gcc", "g++", "git", "make", "uv", "uvx", "curl", "mypy", "pytest", "ruff", "sphinx-build")
    folders = ("app/.venv/bin", "usr/local/bin", "usr/bin", "usr/sbin")
    assert [name for name in names for folder in folders if (image.root / folder / name).exists()] == []
    assert list((image.root / "root").glob(".cache/uv*")) == []
    [packages] = (image.root / "app/.venv/lib").glob("python*/site-packages")
    developers = ("hypothesis", "mypy", "playwright", "pytest", "sphinx")
    assert [name for name in developers if (packages / name).exists()] == []
    assert (packages / "nvidia").exists() == (image.root / "etc/ld.so.conf.d/cuda.conf").exists()


def test_the_size_is_what_the_page_says(image: Image) -> None:
    """docs/operations.md tells the size of what is installed, within a tenth."""
    page = (REPOSITORY / "docs" / "operations.md").read_text("utf-8")
    [told] = re.findall(rf"\| `{image.root.name}` \| ([\d,]+) MB \|", page)
    du = ["du", "-sm", "--count-links", str(image.root / "app/.venv")]
    measured = subprocess.run(du, capture_output=True, text=True, check=True)
    assert int(measured.stdout.split()[0]) == pytest.approx(int(told.replace(",", "")), rel=0.1)


async def test_the_bot_runs_is_healthy_and_ends_in_good_order(image: Image, volume: Path) -> None:
    """The entrypoint starts the bot, which connects; the image's health check is green, and SIGTERM ends it with 0."""
    port = str(free_port())
    async with LocalDiscord() as local:
        shutil.copy(local.certificate_path, volume / "ca.pem")
        (volume / "ca.pem").chmod(0o644)
        given = {
            "DISCORD_TOKEN": f"{ROOMTONE_BOT_ID}.local",
            "ROOMTONE_DISCORD__API_BASE": local.api_base,
            "SSL_CERT_FILE": "/app/data/ca.pem",
            "ROOMTONE_WEB__HOST": "127.0.0.1",
            "ROOMTONE_WEB__PORT": port,
        }
        assert image.health
        started = start(image, volume, **given)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not await asyncio.to_thread(_ready, port):
                assert started.poll() is None, started.communicate()[0]
                assert time.monotonic() < deadline, "the bot did not become ready"
                await asyncio.sleep(0.2)
            assert (await asyncio.to_thread(run, image, volume, *image.health, **given)).returncode == 0
            assert image.stop_signal == "SIGTERM"
            _stop(started)
            out = (await asyncio.to_thread(started.communicate, timeout=PATIENCE_S))[0]
        finally:
            started.kill()
        assert started.returncode == 0, out
        assert "Traceback" not in out
    assert (volume / "roomtone.db").stat().st_uid == int(image.user.partition(":")[0])
