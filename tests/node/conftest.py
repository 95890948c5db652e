"""The independent client's script, with its packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.packages import HERE, installed_packages


@pytest.fixture(scope="session")
def independent_client() -> Path:
    """Install the client's packages and return its script."""
    installed_packages()
    return HERE / "client.mjs"
