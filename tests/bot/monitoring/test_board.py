"""The Grafana board and the scrape configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from bot.shards import ONLY_SHARD
from tests.bot.monitoring.happened import new_metrics, samples
from voice.asr.scheduler import RecogniserFigures
from voice.queue_figures import QueueFigures

REPOSITORY = Path(__file__).parents[3]
BOARD = REPOSITORY / "config" / "grafana" / "roomtone.json"
MONITORING = REPOSITORY / "docs" / "operations.md"
CLUSTER = REPOSITORY / "docs" / "cluster.md"


def board() -> Mapping[str, Any]:
    """Return the board."""
    return dict(json.loads(BOARD.read_text("utf-8")))


def expressions() -> list[tuple[str, str]]:
    """Return the title and expression of every query of the board."""
    return [(panel["title"], target["expr"]) for panel in board()["panels"] for target in panel.get("targets", ())]


def test_the_board_has_every_metric_and_no_other() -> None:
    """A metric that nobody sees is forgotten. Each says of itself what it measures."""
    metrics = new_metrics()
    metrics.add_recogniser(
        SimpleNamespace(queue=QueueFigures("recogniser", 0, 32), figures=RecogniserFigures())  # type: ignore[arg-type]
    )
    metrics.add_remote_recogniser(SimpleNamespace(outage=None))  # type: ignore[arg-type]
    metrics.add_shards(ONLY_SHARD, ())
    scraped = metrics.scrape()[0].decode()
    told = dict(re.findall(r"^# HELP (\S+) ?(.*)$", scraped, re.MULTILINE))
    assert [name for name, text in told.items() if not text] == []
    shown = {name for _, each in expressions() for name in re.findall(r"\b(?:roomtone|process)_[a-z_]+", each)}
    assert {re.sub(r"_(total|bucket)$", "", name) for name in shown} == {
        # The times at which the counters began are samples of them.
        re.sub(r"_total$", "", name)
        for name in told
        if not name.endswith("_created")
    }


def test_the_page_about_shards_asks_for_metrics_that_exist() -> None:
    """Each expression of docs/cluster.md names only metrics that a bot has."""
    scraped = new_metrics().scrape()[0].decode()
    # The client makes it, when there is one.
    known = {*re.findall(r"^# TYPE (\S+)", scraped, re.MULTILINE), "roomtone_shard_up"}
    asked = re.findall(r"`([^`\n]*roomtone_[^`\n]*)`", CLUSTER.read_text("utf-8"))
    assert asked
    for expression in asked:
        assert set(re.findall(r"\broomtone_[a-z_]+", expression)) <= known, expression


def test_the_alarms_ask_for_metrics_that_exist() -> None:
    """Each names metrics and labels that the bot has, says what to do, and is on the page; Prometheus reads them."""
    scraping = yaml.safe_load((BOARD.parents[1] / "prometheus.yml").read_text("utf-8"))
    rules = [
        rule
        for name in scraping["rule_files"]
        for group in yaml.safe_load((BOARD.parents[1] / name).read_text("utf-8"))["groups"]
        for rule in group["rules"]
    ]
    known = {(name, *labels) for name, labels in samples(new_metrics())}
    told = MONITORING.read_text("utf-8")
    assert rules
    for rule in rules:
        assert rule["annotations"]["summary"]
        assert f"`{rule['alert']}`" in told
        for name, labels in re.findall(r"(roomtone_[a-z]+)(?:\{([^}]*)\})?", rule["expr"]):
            wanted = set(re.findall(r'(\w+)="(\w+)"', labels))
            assert any(name == each[0] and wanted <= set(each[1:]) for each in known), rule["expr"]
