"""The independent client's script, with its packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.node.packages import HERE, installed_packages

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def independent_client() -> Path:
    """Install the client's packages and return its script."""
    installed_packages()
    return HERE / "client.mjs"
