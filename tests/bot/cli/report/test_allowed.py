"""A report has what is listed, and nothing else: no name, word, id, address or key, wherever it stands."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from bot.cli.doctor.finding import Finding, Status
from bot.cli.report.allowed import EVENTS, FIGURES, LABELS, reported_event, reported_findings, reported_settings
from bot.cli.report.command import report_text
from bot.logs.output import configured_logging
from config.load import default_settings
from config.schema import SETTINGS
from tests.sources import nodes, sources
from voice.transport.counters import PacketCounters

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
# A name, words, an id, addresses and keys; the id also as a number.
MARKS = (
    "Zaphod",
    "we meet at nine",
    "198622483471925248",
    "10.20.30.40",
    "models.example",
    "zaphod@models.example",
    "https://models.example/v1?key=sk-12345678",
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "/home/zaphod/roomtone",
)
VALUES = st.sampled_from([*MARKS, *(int(each) for each in MARKS if each.isdecimal())])
NESTED = st.recursive(
    VALUES, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(MARKS), each, max_size=3)
)
FIELDS = st.dictionaries(st.sampled_from([*LABELS, *FIGURES, *MARKS]), NESTED)


@pytest.mark.slow
@given(name=st.sampled_from([*sorted(EVENTS), *MARKS]), fields=FIELDS)
def test_nothing_of_a_marked_event_is_told(name: str, fields: dict[str, Any]) -> None:
    """Whatever a field has, in whatever event: only its name may be told."""
    event = reported_event({"timestamp": NOW.isoformat(), **fields, "event": name})
    if event is None:
        assert name not in EVENTS
        return
    told = repr([event.labels, event.figures])
    assert not [mark for mark in MARKS if mark in told]


@pytest.mark.slow
def test_marks_in_the_log_the_settings_and_the_findings_are_in_no_report(tmp_path: Path) -> None:
    """Every listed event with a mark in every field, every setting and every part of a finding: the report has none."""
    defaults = default_settings()
    for mark in MARKS:
        folder = tmp_path / str(MARKS.index(mark))
        with configured_logging(folder):
            for name in sorted(EVENTS | {"turn_recorded"}):
                structlog.get_logger().info(
                    name, text=mark, **dict.fromkeys([*LABELS.keys() - {"level"}, *FIGURES], mark)
                )
        sections: dict[str, Any] = {}
        for section, name in SETTINGS:
            value = SecretStr(mark) if SETTINGS[section, name].secret else mark
            sections.setdefault(section, {})[name] = value
        settings = defaults.model_copy(
            update={name: getattr(defaults, name).model_copy(update=values) for name, values in sections.items()}
        )
        listed = "\n".join(reported_settings(settings))
        storage = settings.storage.model_copy(update={"data_dir": folder})
        findings = [Finding(mark, Status.OK, mark, mark), Finding(f"mcp {mark}", Status.MISSING, f"no token: {mark}")]
        text = report_text(settings.model_copy(update={"storage": storage}), findings, now=datetime.now(UTC), hours=1.0)
        assert text.count("voice_joined") == 2
        assert mark not in text + listed


def test_what_is_known_is_told() -> None:
    """Words of closed sets and small numbers stand, so that the counts are of use."""
    event = reported_event(
        {
            "timestamp": NOW.isoformat(),
            "event": "request_refused",
            "level": "info",
            "method": "POST",
            "route": "/api/v10/channels/198622483471925248/messages",
            "status": 400,
            "code": 50035,
            "mistakes": ["embeds.0.title.BASE_TYPE_MAX_LENGTH"],
            "error_class": "NotFound",
            "duration_ms": 12.5,
        }
    )
    assert event is not None
    assert event.labels == {
        "method": "POST",
        "route": "/api/v10/channels/{}/messages",
        "status": "400",
        "code": "50035",
        "mistakes": "embeds.0.title.BASE_TYPE_MAX_LENGTH",
        "error_class": "NotFound",
    }
    assert event.figures == {"duration_ms": 12.5}


def test_settings_and_findings_that_the_code_knows_are_told() -> None:
    defaults = default_settings()
    changed = {
        "asr": defaults.asr.model_copy(update={"model": "whisper-small", "languages": ("Zaphod",)}),
        "web": defaults.web.model_copy(update={"port": 8_123}),
        "llm": defaults.llm.model_copy(update={"api_key": SecretStr("sk-12345678")}),
        "screen": defaults.screen.model_copy(update={"enabled": not defaults.screen.enabled}),
    }
    lines = list(reported_settings(defaults.model_copy(update=changed)))
    assert "web.port = 8123" in lines
    assert "llm.api_key = (not shown)" in lines
    assert f"screen.enabled = {'no' if defaults.screen.enabled else 'yes'}" in lines
    missing = Finding("listening", Status.WARNING, "turns end later", "Run `roomtone models pull`.")
    assert list(reported_findings([missing])) == ["warning  listening: Run `roomtone models pull`."]


@pytest.mark.slow
def test_every_listed_event_and_field_is_logged_somewhere() -> None:
    """A name that no line has any more would let through what a later line has under it."""
    code = [node for path in sources() if path.name != "allowed.py" for node in nodes(path)]
    assert {node.value for node in code if isinstance(node, ast.Constant) and isinstance(node.value, str)} >= EVENTS
    keywords = {keyword.arg for call in code if isinstance(call, ast.Call) for keyword in call.keywords}
    given = keywords | PacketCounters().as_dict().keys() | {"level", "logger"}
    assert LABELS.keys() | FIGURES <= given
