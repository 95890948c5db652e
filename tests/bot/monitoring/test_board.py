"""The Grafana board and the scrape configuration, asked of a real Prometheus that watches a bot."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC
from typing import TYPE_CHECKING, Any

import pytest

from bot.app import running_bot
from bot.events import ignore_event
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.runner.scripted_member import scripted_member
from rehearsal.servers.chat import LocalChatServer
from rehearsal.servers.free_port import free_port
from tests.bot.discord.test_client import ADA
from tests.bot.monitoring.prometheus import REPOSITORY, scraping
from tests.bot.monitoring.test_metrics import new_metrics, samples
from tests.bot.test_app_health import CLIP, settings_in
from tests.patience import PATIENCE_S
from voice.asr.scheduler import RecogniserFigures

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BOARD = REPOSITORY / "config" / "grafana" / "roomtone.json"
MONITORING = REPOSITORY / "docs" / "monitoring.md"
CLUSTER = REPOSITORY / "docs" / "cluster.md"
# What Grafana puts in for the variable: more than four scrapes, as it does, and all that happens in the test.
RATE_INTERVAL = f"{PATIENCE_S:.0f}s"


def board() -> Mapping[str, Any]:
    """Return the board."""
    return dict(json.loads(BOARD.read_text("utf-8")))


def expressions() -> list[tuple[str, str]]:
    """Return the title and expression of every query of the board."""
    return [(panel["title"], target["expr"]) for panel in board()["panels"] for target in panel.get("targets", ())]


def alarm() -> str:
    """Return the condition of the alarm on the page about operations."""
    found = re.search(r"^An alarm that means something: `(.+?)`", MONITORING.read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def test_every_panel_says_what_it_shows_and_asks_for_metrics_that_exist() -> None:
    """Each panel has a title, a description and a place of its own, and names only metrics that the bot has."""
    panels = [panel for panel in board()["panels"] if panel["type"] != "row"]
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board()["panels"]}) == len(
        board()["panels"]
    )
    assert len({panel["id"] for panel in board()["panels"]}) == len(board()["panels"])
    metrics = new_metrics()
    metrics.add_remote_recogniser(lambda: True)
    known = set(re.findall(r"^# TYPE (\S+)", metrics.scrape()[0].decode(), re.MULTILINE))
    families = {name.removesuffix("_total") for name in known} | {"roomtone_recognitions"}
    for title, expression in expressions():
        for name in re.findall(r"\b(?:roomtone|process)_[a-z_]+", expression):
            family = re.sub(r"_(total|bucket)$", "", name)
            assert family in families or family.startswith("roomtone_recogniser_"), f"{title}: {name}"


def test_every_metric_is_on_the_board_and_explained() -> None:
    """A metric that nobody sees is forgotten, and so is one that docs/monitoring.md does not explain."""
    metrics = new_metrics()
    metrics.add_recogniser(RecogniserFigures)
    metrics.add_remote_recogniser(lambda: True)
    names = {re.sub(r"_(total|bucket|count|sum|created)$", "", name) for name, _ in samples(metrics)}
    for page in (BOARD, MONITORING):
        text = page.read_text("utf-8")
        assert {name for name in names if name.startswith("roomtone_") and name not in text} == set(), page.name


def test_the_page_about_shards_asks_for_metrics_that_exist() -> None:
    """Each expression of docs/cluster.md names only metrics that a bot has, and labels that its metrics are said to
    have.
    """
    scraped = new_metrics().scrape()[0].decode()
    # The client makes it, when there is one.
    known = {*re.findall(r"^# TYPE (\S+)", scraped, re.MULTILINE), "roomtone_shard_up"}
    families = {name.removesuffix("_total") for name in known}
    asked = re.findall(r"`([^`\n]*roomtone_[^`\n]*)`", CLUSTER.read_text("utf-8"))
    assert asked
    rows = [row for row in MONITORING.read_text("utf-8").splitlines() if row.startswith("| `roomtone_")]
    for expression in asked:
        found = {re.sub(r"_(total|bucket)$", "", name) for name in re.findall(r"\broomtone_[a-z_]+", expression)}
        assert found <= families, expression
        labels = {label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")}
        said = " ".join(row for row in rows if any(name in row for name in found))
        assert {label for label in labels - {"instance", "le"} if f"`{label}`" not in said} == set(), expression


@pytest.mark.slow
@pytest.mark.asyncio
async def test_every_query_of_the_board_is_answered(tmp_path: Path, whisper_model_dir: Path) -> None:
    """Prometheus watches a bot to which Ada says something and which answers her. Every expression of the board parses
    and has data; what people wait for has a number. The bot's recogniser is away, so it hears by itself.
    """
    clip = Clip.load(CLIP)
    async with LocalChatServer() as server, LocalDiscord() as local, scripted_member(local, ADA) as ada:
        settings = settings_in(
            tmp_path,
            local,
            whisper_model_dir,
            llm={"base_url": server.base_url, "model": "local-chat"},
            models={"directory": REPOSITORY / "data" / "models"},
            asr={
                "engine": "endpoint",
                "base_url": f"http://127.0.0.1:{free_port()}/v1",
                "model_dir": whisper_model_dir,
                "language": "en",
            },
        )
        async with (
            running_bot(settings, observe=ignore_event, zone=UTC, rejoin=False) as running,
            scraping(running.web.port, tmp_path / "prometheus") as prometheus,
        ):
            await prometheus.until("roomtone_ready == 1")
            assert await prometheus.query(alarm()) == []
            await local.invoke(ADA, "join")
            await ada.meet(ROOMTONE_BOT_ID, timeout_s=PATIENCE_S)
            await prometheus.until("roomtone_rooms == 1")
            await ada.say(clip)
            for needed in (
                'roomtone_replies_total{outcome="spoken"} > 0',
                'roomtone_packets_total{outcome="decoded"} > 0',
                'roomtone_remote_recognitions_total{outcome="unreachable"} > 0',
                f"rate(roomtone_model_calls_total[{RATE_INTERVAL}])",
                f'rate(roomtone_stage_seconds_count{{stage="end_to_sound"}}[{RATE_INTERVAL}]) > 0',
                f"rate(roomtone_event_loop_lag_seconds_count[{RATE_INTERVAL}]) > 0",
            ):
                await prometheus.until(needed)
            silent = []
            for title, expression in expressions():
                found = await prometheus.query(expression.replace("$__rate_interval", RATE_INTERVAL))
                if not found:
                    silent.append(title)
            assert silent == []
            (waited,) = await prometheus.query(
                f'histogram_quantile(0.5, sum by (le) (rate(roomtone_stage_seconds_bucket{{stage="end_to_sound"}}'
                f"[{RATE_INTERVAL}])))"
            )
            assert 0.0 < float(waited["value"][1]) < math.inf
            full = await prometheus.query("sum by (queue) (roomtone_queue_capacity > 0 < Inf)")
            assert {each["metric"]["queue"] for each in full} >= {"sound", "recognise", "record", "play", "recogniser"}
            assert all(math.isfinite(float(each["value"][1])) for each in full)


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_alarm_tells_of_a_bot_that_is_not_there(tmp_path: Path) -> None:
    """A bot that has ended has no metrics, and no sign of it is the worst sign."""
    async with scraping(free_port(), tmp_path) as prometheus:
        await prometheus.until("up == 0")
        assert await prometheus.query(alarm()) != []
