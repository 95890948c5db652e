"""compose.yaml is valid, keeps what it starts in bounds, and fits the image and the other files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from bot.cli.run import STOP_WITHIN_S
from bot.discord import connection
from bot.room import guild_room
from tests.deploy import dockerfile
from tests.scenarios.program import REPOSITORY

FILES = ("compose.yaml", "compose.cuda.yaml")
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
STAGES = dockerfile.read((REPOSITORY / "Dockerfile").read_text("utf-8"))


def filled_in(text: str, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a text of the file with the variables of `.env`, as Compose fills them in."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1]) or found[2], text)


@pytest.mark.parametrize("name", FILES)
def test_the_file_follows_the_specification(name: str) -> None:
    """The schema of the Compose specification accepts it."""
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", name],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert checked.returncode == 0, checked.stdout


def test_every_image_of_others_is_fixed_by_digest() -> None:
    """Nobody can exchange what a tag means, in the Compose file and in the Dockerfile."""
    images = [service["image"] for service in SERVICES.values() if "build" not in service]
    images += [stage.base for stage in STAGES.values() if stage.base not in STAGES]
    images += re.findall(r"# syntax=(.*)", (REPOSITORY / "Dockerfile").read_text("utf-8"))
    assert len(images) == 6
    assert [image for image in images if not re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image)] == []


def test_the_bot_is_all_that_starts_by_itself() -> None:
    """Every other service waits for its profile."""
    profiles = {name: service.get("profiles") for name, service in SERVICES.items()}
    assert profiles == {
        "bot": None,
        "postgres": ["postgres"],
        "ollama": ["ollama"],
        "prometheus": ["monitoring"],
        "grafana": ["monitoring"],
    }


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_in_bounds(name: str) -> None:
    """Read-only, without capabilities or new privileges, and reached from this machine alone."""
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert service["pids_limit"] > 0
    assert all(volume.endswith(":ro") for volume in service["volumes"] if volume.startswith("."))


def test_every_path_and_volume_exists() -> None:
    """Each mounted file is in the repository, and each named volume and network is declared and used."""
    mounts = [volume.split(":")[0] for service in SERVICES.values() for volume in service["volumes"]]
    assert [path for path in mounts if path.startswith(".") and not (REPOSITORY / path).exists()] == []
    assert {path for path in mounts if not path.startswith(".")} == set(COMPOSE["volumes"])
    assert {network for service in SERVICES.values() for network in service["networks"]} == set(COMPOSE["networks"])


def test_the_bot_fits_its_image() -> None:
    """The volume, the port and the targets are those of the Dockerfile, and there is time for an orderly end."""
    bot, runtime = SERVICES["bot"], STAGES["runtime"]
    assert bot["volumes"] == [f"roomtone-data:{runtime.last('VOLUME')}"]
    assert filled_in(bot["ports"][0]) == f"127.0.0.1:{runtime.last('EXPOSE')}:{runtime.last('EXPOSE')}"
    assert "/healthz" in (runtime.last("HEALTHCHECK") or "")
    assert bot["build"]["target"] in STAGES
    cuda = yaml.safe_load((REPOSITORY / "compose.cuda.yaml").read_text("utf-8"))
    assert cuda["services"]["bot"]["build"]["target"] in STAGES
    assert bot["stop_grace_period"] == "60s"
    unit = (REPOSITORY / "deploy" / "roomtone.service").read_text("utf-8")
    assert "TimeoutStopSec=60s" in unit
    assert guild_room.CLOSE_TIMEOUT_S + guild_room.CUT_OFF_S + connection.CLOSE_TIMEOUT_S < STOP_WITHIN_S < 60


def test_the_database_is_written_anew_beside_itself() -> None:
    """SQLite makes a whole copy for that, by itself in /tmp, which is in memory here, or in /var/tmp."""
    bot, runtime = SERVICES["bot"], STAGES["runtime"]
    assert [place.partition(":")[0] for place in bot["tmpfs"]] == ["/tmp"]
    variables = dockerfile.environment(runtime.last("ENV") or "", {"PATH": ""})
    assert variables["SQLITE_TMPDIR"] == variables["ROOMTONE_STORAGE__DATA_DIR"] == runtime.last("VOLUME")
    unit = (REPOSITORY / "deploy" / "roomtone.service").read_text("utf-8")
    [folder] = re.findall(r"ROOMTONE_STORAGE__DATA_DIR=(\S+)", unit)
    assert f"Environment=SQLITE_TMPDIR={folder}\n" in unit


def test_the_language_model_gets_the_gpu_and_the_context_that_the_page_names() -> None:
    """Beside the recogniser Ollama has the GPU, and it takes as much as the bot is told to send."""
    cuda = yaml.safe_load((REPOSITORY / "compose.cuda.yaml").read_text("utf-8"))["services"]
    assert cuda["ollama"]["deploy"] == cuda["bot"]["deploy"]
    assert cuda["ollama"]["deploy"]["resources"]["reservations"]["devices"][0]["capabilities"] == ["gpu"]
    page = (REPOSITORY / "docs" / "operations.md").read_text("utf-8")
    [tokens] = re.findall(r"ROOMTONE_BUDGET__MAX_CONTEXT_TOKENS=(\d+)", page)
    assert SERVICES["ollama"]["environment"]["OLLAMA_CONTEXT_LENGTH"] == f"${{OLLAMA_CONTEXT_LENGTH:-{tokens}}}"


def test_the_settings_file_of_the_page_is_mounted_where_the_bot_looks() -> None:
    """compose.override.yaml, as the page has it, is added to the bot and puts the file into its working folder."""
    page = (REPOSITORY / "docs" / "operations.md").read_text("utf-8")
    [block] = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    override = yaml.safe_load(block)["services"]
    assert override == {"bot": {"volumes": [f"./roomtone.toml:{STAGES['runtime'].last('WORKDIR')}/roomtone.toml:ro"]}}


def test_a_server_on_the_same_machine_has_a_name() -> None:
    """The name that the guide gives a model server outside of the container is known inside."""
    assert SERVICES["bot"]["extra_hosts"] == ["host.docker.internal:host-gateway"]
    assert "`host.docker.internal`" in (REPOSITORY / "docs" / "guide.md").read_text("utf-8")


def test_no_secret_is_written_down() -> None:
    """Passwords come from `.env`, and a variable without a value there keeps nobody from starting the bot."""
    text = (REPOSITORY / "compose.yaml").read_text("utf-8")
    assert [value for value in re.findall(r"PASSWORD: (.+)", text) if not re.fullmatch(r"\$\{\w+:-\}", value)] == []
    assert "${" not in re.sub(r"\$\{\w+:-[^}]*\}", "", text)


def test_another_web_port_holds_everywhere() -> None:
    """Whoever chooses one in `.env`, as on a machine without Docker, reaches the bot's pages there, and so does
    Prometheus.
    """
    chosen = {"ROOMTONE_WEB__PORT": "9000"}
    bot = SERVICES["bot"]
    assert [filled_in(port, chosen) for port in bot["ports"]] == ["127.0.0.1:9000:9000"]
    assert filled_in(bot["environment"]["ROOMTONE_WEB__PORT"], chosen) == "9000"
    assert "/bot:9000/" in filled_in(SERVICES["prometheus"]["entrypoint"][-1], chosen)


def test_prometheus_asks_the_bot_by_its_name() -> None:
    """What Prometheus's start replaces stands in config/prometheus.yml, so that it asks the bot's container."""
    start = filled_in(SERVICES["prometheus"]["entrypoint"][-1])
    here, there = re.findall(r"sed s/(\S+?)/(\S+?)/ ", start)[0]
    config = yaml.safe_load((REPOSITORY / "config" / "prometheus.yml").read_text("utf-8").replace(here, there))
    targets = [each["targets"] for job in config["scrape_configs"] for each in job["static_configs"]]
    assert targets == [["bot:8095"]]


def test_grafana_finds_prometheus_and_the_board() -> None:
    """The provisioned source is the service, and the folder of boards is where it is mounted."""
    [source] = yaml.safe_load((REPOSITORY / "deploy/grafana/datasources.yaml").read_text("utf-8"))["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [boards] = yaml.safe_load((REPOSITORY / "deploy/grafana/boards.yaml").read_text("utf-8"))["providers"]
    assert f"./config/grafana:{boards['options']['path']}:ro" in SERVICES["grafana"]["volumes"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home.startswith(f"{boards['options']['path']}/")
    assert (REPOSITORY / "config" / "grafana" / home.rsplit("/", 1)[1]).exists()
