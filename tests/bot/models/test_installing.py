"""A model is installed in a process of its own, which tells nothing but its failure."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bot
from bot.errors import ModelError
from bot.models import directory
from bot.models.catalogue import find_model
from bot.models.directory import INSTALL_TIMEOUT_S, ModelDirectory, inherited_environment, install
from tests.fakes.loop_time import wait_out
from tests.patience import PATIENCE_S

VOICE_JOE = find_model("joe")


def stand_in(folder: Path, body: str) -> None:
    """Put a module `bot.models` for the process into `folder`: it gets the same arguments."""
    package = folder / "bot" / "models"
    package.mkdir(parents=True)
    for init in (package.parent, package):
        (init / "__init__.py").write_text("")
    (package / "__main__.py").write_text(f"import os, pathlib, sys, time\nfolder = pathlib.Path(sys.argv[1])\n{body}\n")


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Whoever runs the tests may have started them in the background of a shell, which lets them ignore Ctrl-C. What
    they start would ignore it too.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which the process imports its `bot.models`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path[1:]]))
    monkeypatch.setattr(directory, "REPORT_EVERY_S", 0.01)
    return tmp_path


async def ignore(_: float) -> None:
    """Ignore the progress."""


def test_the_process_inherits_no_secret() -> None:
    """It knows where it is and how to reach the network, and neither the bot's token nor anybody's keys."""
    given = {
        "PATH": "/bin",
        "https_proxy": "http://127.0.0.1:1",
        "PIP_INDEX_URL": "http://127.0.0.1:2",
        "npm_config_registry": "http://127.0.0.1:3",
        "DISCORD_TOKEN": "a",
        "ROOMTONE_LLM__API_KEY": "b",
        "OPENAI_API_KEY": "c",
    }
    assert set(inherited_environment(given)) == {"PATH", "https_proxy", "PIP_INDEX_URL"}


async def test_a_failure_is_the_sentence_that_the_process_printed(workshop: Path) -> None:
    """What the process says about its failure is for the operator."""
    stand_in(workshop, "print('The moon is down.'); sys.exit(1)")
    with pytest.raises(ModelError, match=r"^The moon is down\.$"):
        await install(VOICE_JOE, ModelDirectory(workshop / "models"), ignore)


async def test_a_download_that_breaks_off_or_takes_too_long_says_what_to_do(
    workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies without a word, and one that does not end, are a sentence with the command to use."""
    stand_in(workshop, "time.sleep(60) if (folder / 'slow').exists() else sys.exit(9)")
    models = ModelDirectory(workshop / "models")
    with pytest.raises(ModelError, match="broke off"):
        await install(VOICE_JOE, models, ignore)
    models.directory.mkdir()
    (models.directory / "slow").touch()
    downloading = asyncio.create_task(install(VOICE_JOE, models, ignore))
    await wait_out(monkeypatch, INSTALL_TIMEOUT_S)
    with pytest.raises(ModelError, match="12 minutes"):
        await downloading


async def test_progress_is_told_and_a_cancelled_download_is_ended(workshop: Path) -> None:
    """The megabytes that have arrived are told; when nobody waits any more, the process is ended and tidies up."""
    stand_in(
        workshop,
        "part = folder / '.voice-joe-x' / 'part'; part.parent.mkdir(parents=True)\n"
        "try:\n    part.write_bytes(bytes(2_000_000)); time.sleep(60)\nexcept KeyboardInterrupt:\n    part.unlink()",
    )
    arrived: asyncio.Queue[float] = asyncio.Queue()
    installing_it = asyncio.create_task(install(VOICE_JOE, ModelDirectory(workshop / "models"), arrived.put))
    async with asyncio.timeout(PATIENCE_S):
        while await arrived.get() < 2.0:
            pass
    installing_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await installing_it
    assert not (workshop / "models" / ".voice-joe-x" / "part").exists()


async def test_a_download_that_is_far_too_large_is_ended(workshop: Path) -> None:
    """A registry sends no model but something without an end. What another download has left does not count."""
    stand_in(
        workshop,
        "part = folder / '.voice-joe-x' / 'part'; part.parent.mkdir()\n"
        "try:\n    part.touch(); os.truncate(part, 10**9); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    part.unlink()",
    )
    left = workshop / "models" / ".voice-joe-killed" / "part"
    left.parent.mkdir(parents=True)
    left.touch()
    os.truncate(left, 10**9)
    told: list[float] = []

    async def note(megabytes: float) -> None:
        told.append(megabytes)

    with pytest.raises(ModelError, match="63 MB"):
        await install(VOICE_JOE, ModelDirectory(workshop / "models"), note)
    assert set(told) <= {0.0}
    assert not (workshop / "models" / ".voice-joe-x" / "part").exists()


def test_a_download_can_be_cancelled_in_a_bot_that_ignores_ctrl_c(tmp_path: Path) -> None:
    """A shell lets what it starts in the background ignore Ctrl-C. The process of a download hears it nevertheless, and
    ends as one that was cancelled, after it has tidied up.
    """
    folder = tmp_path / "models"
    # Instead of a source on the network: it begins, is cancelled, and would go on for ever.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal\n"
        "from bot.models.directory import ModelDirectory\n"
        "def pull(self, *_):\n"
        "    self.directory.mkdir()\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        os._exit(7)\n"
        "    finally:\n"
        "        self.directory.rmdir()\n"
        "ModelDirectory.pull = pull\n"
    )
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "bot.models", str(folder), VOICE_JOE.name],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(bot.__file__).parents[1])])},
            check=False,
            timeout=PATIENCE_S,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.returncode == -signal.SIGINT
    assert not folder.exists()
