"""`roomtone cluster up` writes what Ray's commands read, for this user alone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bot.cluster.deployment import serve_config
from bot.cluster.ray_access import (
    ENVIRONMENT_FILE,
    SERVE_FILE,
    TOKEN_FILE,
    ClusterError,
    ray_environment,
    write_ray_files,
)
from bot.cluster.recogniser_service import ServiceSettings


def test_the_files_are_private_and_the_token_stays(tmp_path: Path) -> None:
    """Other machines have a copy of the token. A shell and systemd read the same environment."""
    folder = tmp_path / "it's here"
    config = serve_config(ServiceSettings(model_dir="/models/whisper-base"), {"host": "127.0.0.1", "port": 8571})
    write_ray_files(folder, config)
    token = (folder / TOKEN_FILE).read_text()
    write_ray_files(folder, config)
    assert (folder / TOKEN_FILE).read_text() == token
    assert len(token) == 64
    for name in (TOKEN_FILE, ENVIRONMENT_FILE, SERVE_FILE):
        assert (folder / name).stat().st_mode & 0o077 == 0
    script = f'set -a; . "{folder / ENVIRONMENT_FILE}"; env'
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {f"{name}={value}" for name, value in ray_environment(folder).items()} <= set(told)
    assert json.loads((folder / SERVE_FILE).read_text()) == config


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """With the setting to look at."""
    (tmp_path / "file").touch()
    with pytest.raises(ClusterError, match=r"storage\.data_dir"):
        write_ray_files(tmp_path / "file" / "cluster", {})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ray_serve_takes_its_file() -> None:
    """The same as `roomtone cluster up` deploys."""
    from ray.serve.schema import ServeDeploySchema

    settings = ServiceSettings(model_dir="/models/whisper-base", least=1, most=4)
    read = ServeDeploySchema.model_validate(serve_config(settings, {"host": "10.0.0.1", "port": 8571}))
    assert read.http_options.host == "10.0.0.1"
    assert ServiceSettings.model_validate(read.applications[0].args) == settings
