"""Every command in the documentation is run here, or by another test that is named here."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import aiohttp
import pytest

from bot.cli.app import run_command_line
from bot.discord.client import RoomtoneClient
from bot.settings import DiscordSettings
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, GuildSpec
from rehearsal.discord.interactions.commands import build_invocation
from rehearsal.discord.server import LocalDiscord
from rehearsal.script.scenario_file import bundled_scenarios
from tests.bot.discord.client import FakeRooms
from tests.bot.discord.commands.all_commands import all_command_adders
from tests.scenarios.program import REPOSITORY, environment

PAGES = sorted(
    page
    for pages in ("*.md", "docs/**/*.md", "examples/*.md", "rehearsal/discord/*.md")
    for page in REPOSITORY.glob(pages)
)
# A code block marked `sh`, indented or not. A comment at the end of a line is for the reader.
_FENCE = re.compile(r"^ *```sh\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"\s{2,}#.*$")

# Command -> its exit status. Run here, in a folder with the examples and an unchanged copy of `.env.example`.
RUN_HERE = {
    # Nobody can answer its questions here.
    "roomtone setup": 1,
    # There is no token in that copy, so the command says what to do.
    "roomtone doctor --live 123456789012345678": 1,
    "roomtone doctor": 0,
    # Nobody can say yes here.
    "roomtone report": 1,
    "roomtone replay examples/evening.jsonl --report replay.json": 0,
    "roomtone tail --last 20": 0,
    "roomtone bench": 0,
}
# Run here on a trial: the beginning of the evening of which the page speaks, and its last question.
RUN_ON_TRIAL = (
    "roomtone --config trial memory list",
    "roomtone --config trial memory search wedding",
    "roomtone --config trial explain",
    "roomtone --config trial explain --turn 464",
    "roomtone --config trial tail --event compaction",
    "roomtone replay trial/transcript.jsonl",
)
# How many steps of the evening that trial has, the step of the question about the wedding, and the question's turn.
BEGINNING, WEDDING, ASKED = 95, 493, "464"
# Command -> the file that runs it and a text in that file. Another test runs it, because it takes minutes or needs
# another process.
RUN_THERE = {
    "roomtone rehearse three-hours --keep trial": ("tests/scenarios/test_three_hours.py", '"three-hours"'),
    "roomtone --config data/trial memory list": ("tests/docs/test_commands.py", "trial memory list"),
    "roomtone replay examples/evening.jsonl": ("tests/docs/test_install.py", '"examples" / "evening.jsonl"'),
    "roomtone tail --event compaction": ("tests/docs/test_commands.py", "trial tail --event compaction"),
    "roomtone tail --json": ("tests/bot/cli/log_view/test_tail.py", '"--json"'),
    "make test": (".ci/run", "make test"),
    "make quick": ("Makefile", "--jobs 4 lint types quick-core quick-bot"),
    "make run": ("Makefile", "roomtone run"),
    "roomtone backup copy.db": ("tests/bot/cli/test_restore.py", '"backup", file'),
    "roomtone backup backups --keep 7": ("tests/bot/cli/test_restore.py", "roomtone backup backups --keep 7"),
    "roomtone restore copy.db": ("tests/bot/cli/test_restore.py", '"restore", file'),
    "roomtone rehearse hello": ("tests/scenarios/test_taking_part.py", '"hello"'),
    "roomtone rehearse crowd --loss 0.05 --padding 0.05 --reorder 0.05": (
        "tests/scenarios/test_taking_part.py",
        'Program.rehearse(tmp_path, "crowd", *worse)',
    ),
    "roomtone rehearse watched": ("tests/scenarios/test_taking_part.py", '"watched"'),
    "make endurance": ("Makefile", "python -m tests.endurance"),
    "python -m tests.endurance --only kills --kills 200": (
        "tests/endurance/test_endurance.py",
        '"--only", piece, "--kills"',
    ),
    "python -m tests.cluster_faults --times 3 --json FILE": (
        "Makefile",
        "python -m tests.cluster_faults --times 3 --json",
    ),
    "roomtone cluster up --ip 10.0.0.1": ("tests/bot/cli/test_cluster.py", '"cluster", "up", "--ip", "10.0.0.1"'),
    "roomtone cluster up --shards 16 --groups 4 --recognisers 1-4": (
        "tests/bot/cli/test_cluster.py",
        '"--shards", "16", "--groups", "4", "--recognisers", "1-4"',
    ),
    "roomtone cluster status": ("tests/bot/cli/test_cluster.py", '"cluster", "status"'),
    "roomtone run --shards 0-7/16": ("tests/bot/cli/test_run.py", '_shards("0-7/16")'),
    "ROOMTONE_SHARDS=8-15/16 roomtone run": ("tests/bot/test_shard_processes.py", '"ROOMTONE_SHARDS": shards'),
    "roomtone rehearse --serve": ("tests/scenarios/test_served.py", '"rehearse", "--serve"'),
    "pip install ./wheels/compaction": ("tests/docs/test_install.py", '["compaction"]'),
    "python examples/memory.py examples/evening.jsonl": (
        "tests/docs/test_install.py",
        '["memory.py", "evening.jsonl"]',
    ),
}
# Commands that install or configure something. The tests below check those of ours without running them.
SHOWN = {
    "sudo apt install python3 python3-venv make git",
    "make setup",
    "cp .env.example .env",
    "make cluster",
}
# The tests have no container engine, no Kubernetes and no running systemd: tests/deploy checks the files of these.
SERVICE = {
    "docker compose up -d --build",
    "docker compose logs -f bot",
    "docker compose exec bot roomtone backup /app/data/copy.db",
    "docker compose cp bot:/app/data/copy.db copy.db",
    "docker compose stop bot",
    "docker compose run --rm bot restore /app/data/copy.db",
    "docker compose up -d",
    "docker compose run --rm -T --entrypoint sh bot -c 'umask 077; cat > /app/data/copy.db' < copy.db",
    "docker compose --profile postgres up -d",
    "docker compose --profile ollama up -d",
    "docker compose --profile monitoring up -d",
    "docker build -t roomtone:cluster --target cluster .",
    'kubectl create secret generic roomtone-cluster --from-literal=auth_token="$(openssl rand -hex 32)"',
    "kubectl create secret generic roomtone-bot --from-env-file=.env",
    "kubectl apply -f deploy/kuberay.yaml",
    "docker compose -f compose.yaml -f compose.cuda.yaml up -d --build",
    "sudo make -C /opt/roomtone libraries",
    # The Dockerfile tells the system of CUDA's libraries in the same way.
    "sudo make -C /opt/roomtone cuda",
    "find /opt/roomtone/.venv -type d -path '*/nvidia/*/lib' | sudo tee /etc/ld.so.conf.d/roomtone-cuda.conf",
    "sudo ldconfig",
    "sudo useradd --system --home-dir /var/lib/roomtone --shell /usr/sbin/nologin roomtone",
    "sudo install -D -m 0600 /opt/roomtone/.env.example /etc/roomtone/env",
    "sudo install -m 0644 /opt/roomtone/deploy/roomtone.service /etc/systemd/system/",
    "sudo install -d -o roomtone -g roomtone -m 0700 /var/lib/roomtone",
    "sudo install -o roomtone -g roomtone -m 0600 copy.db /var/lib/roomtone/copy.db",
    "sudo systemctl enable --now roomtone",
    "sudo install -m 0644 /opt/roomtone/deploy/roomtone-backup.* /etc/systemd/system/",
    "sudo systemctl enable --now roomtone-backup.timer",
    *(
        f"sudo /opt/roomtone/deploy/service-command {words}"
        for words in ("tail", "doctor", "memory prune", "restore copy.db")
    ),
    "journalctl -u roomtone -f",
}

NOBODY_THERE = re.compile(
    r"Join first|Let them join first|No bot has registered|Nobody is connected|There is no message"
)


def commands() -> dict[str, list[str]]:
    """Return every command in the documentation, with the pages that contain it."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for block in _FENCE.findall(page.read_text("utf-8")):
            for line in block.splitlines():
                command = _COMMENT.sub("", line).strip().removeprefix(".venv/bin/")
                if command and not command.startswith("#"):
                    found.setdefault(command, []).append(page.name)
    return found


COMMANDS = commands()
CURLS = [command for command in COMMANDS if command.startswith("curl ")]
# The options of the benchmarks are checked here; tests/benchmarks runs the benchmarks.
BENCHES = [command for command in COMMANDS if command.startswith("roomtone bench ")]


def test_every_command_has_its_proof() -> None:
    """Every command in the documentation is tested, and every command listed here is in the documentation."""
    proven = {*RUN_HERE, *RUN_ON_TRIAL, *RUN_THERE, *SHOWN, *SERVICE, *CURLS, *BENCHES}
    unproven = {command: pages for command, pages in COMMANDS.items() if command not in proven}
    unproven = {command: pages for command, pages in unproven.items() if not command.startswith("CONTROL=")}
    assert unproven == {}
    assert [
        command for command in (*RUN_HERE, *RUN_ON_TRIAL, *RUN_THERE, *SHOWN, *SERVICE) if command not in COMMANDS
    ] == []


@contextmanager
def running_in(folder: Path) -> Iterator[StringIO]:
    """Let the command line run here as in this folder, without the tester's settings. Yields what is printed."""
    printed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        for name in (*os.environ.keys() - environment(folder).keys(), "ROOMTONE_STORAGE__DATA_DIR"):
            patch.delenv(name, raising=False)
        # `--config` sets it for what the command starts, and here it would stay.
        patch.setenv("ROOMTONE_CONFIG", "")
        patch.setenv("ROOMTONE_MODELS__DIRECTORY", str(REPOSITORY / "data" / "models"))
        patch.chdir(folder)
        yield printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, as a checkout has them."""
    place = tmp_path_factory.mktemp("docs")
    shutil.copytree(REPOSITORY / "examples", place / "examples")
    shutil.copy(REPOSITORY / ".env.example", place / ".env")
    return place


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a rehearsal was kept."""
    place = tmp_path_factory.mktemp("trial")
    whole = bundled_scenarios()["three-hours"]
    steps = whole.with_name("steps.jsonl").read_text("utf-8").splitlines(keepends=True)
    (place / "steps.jsonl").write_text("".join([*steps[:BEGINNING], steps[WEDDING]]), "utf-8")
    begun = re.sub(r"^expect = \[$.*?^\]$", "", whole.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    (place / "short.toml").write_text(begun, "utf-8")
    with running_in(place) as printed:
        assert run_command_line(["rehearse", "short.toml", "--keep", "trial"]) == 0, printed.getvalue()
    told = printed.getvalue().partition("This trial is kept in trial. Look at it:")[2]
    named = {line.strip() for line in told.splitlines() if line.startswith("  roomtone ")}
    searched = {line for line in named if line.startswith("roomtone --config trial memory search ")}
    assert len(searched) == 1
    assert len(named) == 5
    assert named - searched <= {*RUN_ON_TRIAL, *RUN_THERE}
    return place


@pytest.mark.parametrize("command", RUN_HERE)
def test_a_quick_command_does_what_the_page_says(command: str, folder: Path) -> None:
    """The command prints something and ends with the expected status and without a traceback."""
    with running_in(folder) as printed:
        status = run_command_line(shlex.split(command)[1:])
    assert status == RUN_HERE[command], printed.getvalue()
    assert "Traceback" not in printed.getvalue()
    assert printed.getvalue().strip()


@pytest.mark.parametrize("command", RUN_ON_TRIAL)
def test_a_trial_can_be_looked_at(command: str, trial: Path) -> None:
    """Five minutes after cloning, every command that looks at a memory has one to look at, as the end of the rehearsal
    names them.
    """
    with closing(sqlite3.connect(trial / "trial" / "roomtone.db")) as database:
        (asked,) = database.execute("SELECT max(seq) FROM turns WHERE kind = 'speech'").fetchone()
    words = [str(asked) if word == ASKED else word for word in shlex.split(command)[1:]]
    with running_in(trial) as printed:
        assert run_command_line(words) == 0, printed.getvalue()
    assert len(printed.getvalue().splitlines()) > 3
    assert "Traceback" not in printed.getvalue()


@pytest.mark.parametrize("command", RUN_THERE)
def test_a_long_command_is_run_where_it_says(command: str) -> None:
    """The file that `RUN_THERE` names contains the command."""
    file, evidence = RUN_THERE[command]
    assert evidence in (REPOSITORY / file).read_text("utf-8")


@pytest.mark.parametrize("command", BENCHES)
def test_a_benchmark_knows_its_options(command: str, folder: Path) -> None:
    """The benchmark has every option of the example. Only its help is run, because the benchmark takes an hour."""
    words = shlex.split(command.replace(" NAME", " memory"))[1:]
    with running_in(folder) as printed:
        assert run_command_line([*words[:2], "--help"]) == 0
    shown = re.sub(r"\x1b\[[\d;]*m", "", printed.getvalue())
    assert [word for word in words if word.startswith("--") and word not in shown] == []


def test_setting_up_is_one_target() -> None:
    """`make setup`, `make run` and `make test` exist, and a dry run of each works."""
    for target in ("setup", "run", "test"):
        planned = subprocess.run(
            ["make", "--dry-run", target], capture_output=True, text=True, check=True, cwd=REPOSITORY
        )
        assert "roomtone" in planned.stdout


def test_a_service_downloads_its_models_by_itself() -> None:
    """What installs the libraries of a service leaves its checkout without models, which the service would not use."""
    planned = subprocess.run(
        ["make", "--dry-run", "--always-make", "libraries"], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    assert "sync" in planned.stdout
    assert "models pull" not in planned.stdout


def test_cudas_libraries_cost_no_other_library() -> None:
    """`make cuda` adds the group `cuda`, and leaves the extras and whatever else is there."""
    planned = subprocess.run(["make", "--dry-run", "cuda"], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    (command,) = [line for line in planned.stdout.splitlines() if "--group cuda" in line]
    assert {"--frozen", "--all-extras", "--inexact"} <= set(shlex.split(command))


@pytest.mark.parametrize("command", [command for command in CURLS if "/command" in command])
def test_a_control_request_uses_a_command_that_the_bot_has(command: str) -> None:
    """Each slash command in the examples is one of the bot's, with options of these names and types."""
    words = shlex.split(command)
    body = json.loads(words[words.index("-d") + 1])
    tree = RoomtoneClient(DiscordSettings(), FakeRooms(), all_command_adders()).tree
    registered = [(ROOMTONE_BOT_ID, {**each.to_dict(tree), "id": "1"}) for each in tree.get_commands()]
    guild = GuildSpec()
    application_id, _ = build_invocation(
        guild, registered, user_id=guild.owner.id, name=body["name"], options=body.get("options", {})
    )
    assert application_id == ROOMTONE_BOT_ID


@pytest.mark.parametrize("command", CURLS)
async def test_a_control_request_is_understood(command: str) -> None:
    """The local Discord accepts the example as it is written, or answers that the person or bot in it is not there."""
    words = shlex.split(command)[1:]
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    body = words[words.index("-d") + 1] if "-d" in words else None
    [target] = [word for word in words if word.startswith("$CONTROL")]
    async with LocalDiscord() as discord, aiohttp.ClientSession() as http:
        url = target.replace("$CONTROL", discord.control_base)
        async with http.request(method, url, data=body) as answer:
            told = await answer.json()
    assert isinstance(told, dict)
    if answer.status != 200:
        # No person is in voice and no bot is connected. Any other objection would mean that the request itself is
        # wrong.
        assert NOBODY_THERE.search(told["error"]), told
