"""`roomtone cluster`: what its words mean, and what it says without a cluster."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from bot.cli.app import run_command_line
from bot.cli.cluster import pool_settings
from bot.cluster.address import ClusterError
from bot.cluster.node import make_token
from bot.cluster.pool_settings import PoolSettings
from bot.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path

    from voice.asr.settings import AsrSettings


UNREADABLE = ClusterError("The cluster does not tell what its recognisers reserve.")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cluster's folder of a machine that is in one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roomtone.toml").touch()
    monkeypatch.setenv("ROOMTONE_STORAGE__DATA_DIR", str(tmp_path / "data"))
    make_token(tmp_path / "data" / "cluster")
    return tmp_path / "data" / "cluster"


def scaled(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: PoolSettings | ClusterError | None,
    *words: str,
    many: str = "2-8",
    status: int = 0,
) -> list[PoolSettings]:
    """Run `roomtone cluster scale` on a cluster with this pool, and return the pools that were put there."""
    deployed: list[PoolSettings] = []

    async def deployed_pool() -> PoolSettings | None:
        if isinstance(there, ClusterError):
            raise there
        return there

    async def deploy(pool: PoolSettings, asr: AsrSettings) -> None:
        del asr
        deployed.append(pool)

    monkeypatch.setattr("bot.cluster.address.connected", lambda _: nullcontext())
    monkeypatch.setattr("bot.cluster.deployment.deployed_pool", deployed_pool)
    monkeypatch.setattr("bot.cluster.deployment.deploy", deploy)
    assert run_command_line(["cluster", "scale", many, *words]) == status
    return deployed


@pytest.mark.parametrize(
    ("words", "least", "most"), [("1", 1, 1), ("3", 3, 3), ("1-4", 1, 4), (" 2-2 ", 2, 2), ("16-256", 16, 256)]
)
def test_a_number_or_a_range_is_how_many_there_are(words: str, least: int, most: int) -> None:
    """One number is both the least and the most."""
    assert pool_settings(words, cpus=1, gpus=0) == PoolSettings(least=least, most=most, cpus=1, gpus=0)


@pytest.mark.parametrize("words", ["", "many", "1-", "-4", "1-2-3", "1.5", "4-1", "0", "0-4", "1-999"])
def test_anything_else_is_refused_with_an_example(words: str) -> None:
    """Whoever mistyped the number reads how it is written."""
    with pytest.raises(SetupError, match="Give them as MIN-MAX, for example 1-4"):
        pool_settings(words, cpus=1, gpus=0)


ON_GPUS = PoolSettings(least=2, most=2, cpus=0.5, gpus=0.25, batch=4)


@pytest.mark.parametrize(
    ("words", "there", "pool"),
    [
        ((), ON_GPUS, PoolSettings(2, 8, cpus=0.5, gpus=0.25, batch=4)),
        (("--batch", "0"), ON_GPUS, PoolSettings(2, 8, cpus=0.5, gpus=0.25, batch=0)),
        (("--gpus", "0"), ON_GPUS, PoolSettings(2, 8, cpus=0.5, gpus=0, batch=4)),
        (("--cpus", "2", "--gpus", "1"), ON_GPUS, PoolSettings(2, 8, cpus=2, gpus=1, batch=4)),
        ((), None, PoolSettings(2, 8)),
        (("--gpus", "1"), None, PoolSettings(2, 8, gpus=1)),
        (("--cpus", "1", "--gpus", "0", "--batch", "1"), UNREADABLE, PoolSettings(2, 8, batch=1)),
    ],
)
def test_scale_changes_what_it_was_told_and_nothing_else(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    there: PoolSettings | ClusterError | None,
    pool: PoolSettings,
) -> None:
    """A pool on GPUs stays there, and the operator reads what each recogniser reserves. With all three options, what is
    there is not asked for.
    """
    deployed = scaled(folder, monkeypatch, there, *words)
    assert deployed == [pool]
    assert f"Each reserves {pool.reserved}." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("many", "told"), [("1", "1 recogniser."), ("3", "3 recognisers."), ("1-4", "1 to 4 recognisers.")]
)
def test_scale_tells_how_many_there_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], many: str, told: str
) -> None:
    """A fixed number is no range."""
    scaled(folder, monkeypatch, None, many=many)
    assert f"The cluster keeps {told}" in capsys.readouterr().out


def test_scale_changes_nothing_that_it_cannot_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says which options have to be given."""
    assert scaled(folder, monkeypatch, UNREADABLE, "--gpus", "1", status=1) == []
    assert str(UNREADABLE) in capsys.readouterr().err
