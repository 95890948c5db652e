"""The pytest plugin: the example of its page runs as it is written, and people say who and what they wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.errors import PersonError
from rehearsal.pytest_plugin import DiscordForTests
from tests.patience import PATIENCE_S
from tests.rehearsal.greeters import write_greeter
from tests.rehearsal.people.sounds import clip_of
from tests.sources import ROOT
from tests.uv import locked_versions, run_uv


@pytest.mark.parametrize(
    ("library", "packages"), [("", ()), ("py_cord", ("py-cord",)), ("disnake", ("disnake", "dave-py"))]
)
def test_the_example_of_the_page_passes(library: str, packages: tuple[str, ...], tmp_path: Path) -> None:
    """The bot, the line of `conftest.py` and the test are copied from the page into an empty folder. A bot of another
    library passes too. It comes before discord.py, with which it may share its name.
    """
    if packages:
        versions = locked_versions("--only-group", "other-libraries")
        wanted = [
            line.split()[0]
            for line in versions.splitlines()
            if line.startswith(tuple(f"{each}==" for each in packages))
        ]
        run_uv("pip", "install", "--no-deps", "--python", sys.executable, "--target", tmp_path, *wanted)
    write_greeter(tmp_path, library=library)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_greeter.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout


async def test_people_hear_each_other(local_discord: DiscordForTests, tmp_path: Path) -> None:
    """`hear` returns what was said since the last call, and nothing that is said later."""
    async with local_discord.person("Ada") as ada, local_discord.person("Ben") as ben:
        await ben.voice.meet(ada.id)
        await ada.say(clip_of(tmp_path, voice_s=0.6))
        heard = await ben.hear(ada.id)
        assert 0.5 * 16_000 < len(heard) < 1.5 * 16_000
        assert abs(heard).max() > 2000
        with pytest.raises(PersonError, match="heard nothing"):
            await ben.hear(ada.id, timeout_s=0.1)


async def test_a_stranger_cannot_come(local_discord: DiscordForTests) -> None:
    """The error names the people of the guild."""
    with pytest.raises(PersonError, match=r"no Zoe.*Ada"):
        async with local_discord.person("Zoe"):
            pass
