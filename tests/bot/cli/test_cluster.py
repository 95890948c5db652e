"""`roomtone cluster`: what it deploys, what it refuses, and what it says where Ray does not run."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from bot.cli.app import run_command_line
from bot.cluster.ray_access import ClusterError
from bot.cluster.recogniser_service import ServiceSettings
from bot.cluster.shard_groups import ShardGroup

DATABASE = "postgresql://roomtone@10.0.0.9/roomtone"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator's folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roomtone.toml").touch()
    for name in ("ROOMTONE_DATABASE_URL", "ROOMTONE_ASR__API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What was deployed, in a Ray that takes everything."""
    found: dict[str, Any] = {}

    def keep(groups: list[ShardGroup], *, cpus: float) -> None:
        found["groups"] = [(str(group.shards), cpus) for group in groups]

    def serve(settings: ServiceSettings, http: dict[str, Any]) -> None:
        found["service"], found["http"] = settings, http

    monkeypatch.setattr("bot.cluster.ray_access.connected", lambda _: nullcontext())
    monkeypatch.setattr("bot.cluster.deployment.keep_groups", keep)
    monkeypatch.setattr("bot.cluster.deployment.serve_recogniser", serve)
    return found


def test_bots_and_recognisers_are_deployed(
    folder: Path, deployed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the command line says, with the model of the operator's folder."""
    monkeypatch.setenv("ROOMTONE_DATABASE_URL", DATABASE)
    words = ["--shards", "16", "--groups", "4", "--recognisers", "1-4"]
    assert run_command_line(["cluster", "up", *words, "--bot-cpus", "2", "--gpus", "0.25"]) == 0
    assert deployed["groups"] == [("0-3/16", 2.0), ("4-7/16", 2.0), ("8-11/16", 2.0), ("12-15/16", 2.0)]
    service = deployed["service"]
    assert (service.least, service.most, service.cpus, service.gpus) == (1, 4, 1.0, 0.25)
    assert service.model_dir == str(folder / "data" / "models" / "whisper-base")
    assert deployed["http"] == {"host": "127.0.0.1", "port": 8571}


@pytest.mark.usefixtures("folder")
def test_a_service_for_other_machines_has_a_key_and_may_have_tls(
    deployed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reaches it without a key would be heard."""
    words = ["--recognisers", "2", "--listen", "10.0.0.1:8571", "--certificate", "c.pem", "--certificate-key", "k.pem"]
    assert run_command_line(["cluster", "up", *words]) == 1
    assert deployed == {}
    monkeypatch.setenv("ROOMTONE_ASR__API_KEY", "secret")
    assert run_command_line(["cluster", "up", *words]) == 0
    assert deployed["service"].asks_for_key
    assert (deployed["http"]["ssl_certfile"], deployed["http"]["ssl_keyfile"]) == ("c.pem", "k.pem")
    assert deployed["groups"] == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--shards", "4"], "ROOMTONE_DATABASE_URL"),
        (["--shards", "4", "--groups", "5"], "cannot be divided"),
        (["--recognisers", "4-1"], "recogniser"),
        (["--recognisers", "many"], "MIN-MAX"),
        (["--recognisers", "1", "--listen", "10.0.0.1"], "HOST:PORT"),
        (["--recognisers", "1", "--listen", "http://10.0.0.1:8571"], "HOST:PORT"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_makes_no_cluster_is_refused(
    words: list[str], why: str, deployed: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is started, in one sentence."""
    assert run_command_line(["cluster", "up", *words]) == 1
    assert why in capsys.readouterr().err
    assert deployed == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cluster", "up", "--ip", "10.0.0.1"], ("ray start --head", "ray start --address 10.0.0.1:6379")),
        # Nothing is known of shards then.
        (["cluster", "status"], ("Ray does not answer",)),
    ],
)
def test_without_ray_it_says_so(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    told: tuple[str, ...],
) -> None:
    """And how to start it. The files are there by then, so that the commands work."""

    def refused(_: object) -> None:
        raise ClusterError("Ray does not answer on this machine.")

    monkeypatch.setattr("bot.cluster.ray_access.connected", refused)
    assert run_command_line(words) == 1
    said = capsys.readouterr().err
    assert [each for each in told if each not in said] == []
    assert (folder / "data" / "cluster" / "token").is_file() is ("up" in words)
