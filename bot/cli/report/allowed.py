"""What may stand in a report: an allow-list. Nothing in it is a name, a word that somebody said, an id, an address or a
key, whatever the log, the settings and the findings have.

Of the log, the events of `EVENTS` are told, with the fields of `LABELS` and `FIGURES`: a word of a closed set, or a
number that is too small for an id. Of a setting, the value is told if it is one that the code knows. Of a finding, each
sentence that stands in the code as it is. All else is left out, so what is new is silent until it is listed here.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

from bot.cli.doctor import command as doctor
from bot.cli.doctor import machine, services
from bot.cli.settings import changed_settings
from bot.discord import connection, endpoint
from bot.discord.access import RULES
from bot.discord.refused_requests import masked
from bot.dropped_sounds import REASONS
from bot.models.catalogue import CATALOGUE
from bot.monitoring.metrics import PROBLEMS
from compaction.log_events import MemoryEvent
from voice.transport.connection_events import ConnectionEvent
from voice.transport.counters import PacketCounters
from voice.transport.private.client import ReceivingClient

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

    from bot.cli.doctor.finding import Finding
    from bot.logs.reader import LogEvent
    from config.schema import Setting, Settings

# Discord's ids are larger, and no figure of the log is.
MOST: Final = 1e9
NOT_SHOWN = "(not shown)"

PACKETS_COUNTED = "voice_packets_counted"
REQUEST_REFUSED = "request_refused"
EVENTS = frozenset(
    {
        # The main gateway.
        "discord_connected",
        "discord_close_timed_out",
        "gateway_closed",
        "shard_disconnected",
        "shard_connected",
        "fewer_shards_than_recommended",
        "guild_left",
        "moves_noticed_late",
        # Requests and commands.
        REQUEST_REFUSED,
        "message_sent_again",
        "commands_not_registered",
        "command_outdated",
        "option_not_found",
        "command_failed",
        "command_not_deferred",
        "command_answered_too_late",
        "press_not_known",
        # Voice connections.
        "voice_joined",
        "voice_not_joined",
        "voice_connection_changed",
        "voice_connection_failed",
        "voice_connection_keeper_failed",
        "voice_websocket_closed",
        "voice_websocket_not_replaced",
        "voice_message_refused",
        "voice_state_not_requested",
        "voice_state_unknown",
        "leaving_voice_timed_out",
        "bot_taken_out",
        "connection_listener_failed",
        # Sound.
        PACKETS_COUNTED,
        "nobody_heard",
        "speaker_not_heard",
        "sender_found_by_key",
        "receive_buffer_small",
        "heard_sink_failed",
        "outgoing_slot_failed",
        "frame_not_encoded",
        "paced_sender_lost",
        "paced_sender_not_started",
        "speaking_announcement_failed",
        "utterance_dropped",
        # End-to-end encryption.
        "call_encryption_changed",
        "dave_transition_executed",
        "group_recovered",
        "group_not_rejoined",
        "mls_message_refused",
        "mls_proposals_ignored",
        "commit_without_welcome_not_sent",
        # Rooms and the process.
        MemoryEvent.ROOM_OPENED.value,
        MemoryEvent.SESSION_ENDED.value,
        "join_failed",
        "room_ended",
        "room_crashed",
        "room_not_opened",
        "room_problem",
        "room_taken_over",
        "room_close_timed_out",
        "process_failed",
        "stop_timed_out",
        "log_lines_lost",
        "library_logged",
    }
)
FIGURES = frozenset(
    {each.name for each in fields(PacketCounters)}
    | {
        "away_s",
        "count",
        "duration_ms",
        "duration_s",
        "epoch",
        "failures",
        "granted_bytes",
        "guild_count",
        "line_count",
    }
    | {"retry_in_s", "round_trip_s", "shard_count", "timeout_s", "total_turns", "wanted_bytes"}
)


def _number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) >= MOST:
        return None
    return f"{value:.10g}"


def _flag(value: object) -> str | None:
    return ("yes" if value else "no") if isinstance(value, bool) else None


def _one_of(words: Container[str]) -> Callable[[object], str | None]:
    return lambda value: value if isinstance(value, str) and value in words else None


def _mistakes(value: object) -> str | None:
    return ",".join(masked(str(each), ".") for each in value) if isinstance(value, list) and value else None


def _with_subclasses(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _with_subclasses(each)


# Field -> returns its value as it may stand in a report; None: not at all.
LABELS: Mapping[str, Callable[[object], str | None]] = {
    "level": _one_of(("warning", "error", "critical")),
    "change": _one_of([each.__name__.lower() for each in get_args(ConnectionEvent)]),
    "close_code": _number,
    "code": _number,
    "command": _one_of(RULES),
    "end_to_end": _flag,
    # Of all errors that are loaded: the checks have run before, and imported most of the bot.
    "error_class": _one_of({each.__name__ for each in _with_subclasses(BaseException)}),
    "logger": _one_of(sys.modules),
    "method": _one_of(("DELETE", "GET", "PATCH", "POST", "PUT")),
    "mistakes": _mistakes,
    "mode": _one_of(ReceivingClient.supported_modes),
    "op": _number,
    "protocol_version": _number,
    "reason": _one_of(REASONS),
    "resumed": _flag,
    "route": lambda value: masked(value, "/") if isinstance(value, str) else None,
    "shard": _number,
    "status": _number,
    "where": _one_of(PROBLEMS),
}


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """What of an event may be told. `labels`: by field, as text; `figures`: by field."""

    at: datetime
    name: str
    labels: Mapping[str, str]
    figures: Mapping[str, float]


def reported_event(event: LogEvent) -> ReportedEvent | None:
    """Return what of an event of the log may be told; None: nothing."""
    name = event["event"]
    try:
        at = datetime.fromisoformat(str(event.get("timestamp")))
    except ValueError:
        return None
    if name not in EVENTS:
        return None
    labels = {key: text for key, allow in LABELS.items() if (text := allow(event.get(key))) is not None}
    figures = {key: event[key] for key in event if key in FIGURES and _number(event[key]) is not None}
    return ReportedEvent(at if at.tzinfo else at.replace(tzinfo=UTC), name, labels, figures)


def reported_settings(settings: Settings) -> Iterator[str]:
    """Yield a line for each setting that differs from its default."""
    for setting, value in changed_settings(settings):
        yield f"{setting.name} = {NOT_SHOWN if setting.secret else _known_value(setting, value) or NOT_SHOWN}"


def _known_value(setting: Setting, value: object) -> str | None:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, str):
        known = {*_literals(setting.field.annotation), *(each.name for each in CATALOGUE)}
        return value if value in known else None
    if isinstance(value, tuple):
        parts = [_known_value(setting, each) for each in value]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    return _flag(value) or _number(value)


def _literals(annotation: Any) -> Iterator[str]:
    for each in get_args(annotation):
        if isinstance(each, str):
            yield each
        else:
            yield from _literals(each)


def reported_findings(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a line for each finding. What has a name or a number of this machine in it is left out."""
    written = _written_sentences()
    for finding in findings:
        # `mcp` has the server's name behind it.
        names = (name for name in (finding.name, finding.name.partition(" ")[0]) if name in written)
        told = [each for each in (finding.detail, finding.remedy) if each.strip(" .") in written]
        yield " ".join([f"{finding.status.value:<8} {next(names, 'another')}:", " -> ".join(told) or NOT_SHOWN])


@cache
def _written_sentences() -> Collection[str]:
    """Return the texts in the code of `doctor` and of what it asks, as a whole and in their two parts."""
    found: set[str] = set()
    for module in (doctor, machine, services, connection, endpoint):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                first, _, rest = node.value.partition(". ")
                found |= {each.strip(" .") for each in (node.value, first, rest)}
    return found - {""}
