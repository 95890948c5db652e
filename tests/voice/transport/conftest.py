"""A bot that is connected to a channel of the local Discord that the pytest plugin opens."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from rehearsal.pytest_plugin import DiscordForTests
from tests.voice.transport.connection_scene import OpenScene, open_scene


@pytest.fixture
def scene(local_discord: DiscordForTests, tmp_path: Path) -> OpenScene:
    """Opens a scene, with the options of `open_scene`."""
    return partial(open_scene, local_discord, tmp_path)
