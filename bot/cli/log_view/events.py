"""Formats one log event for people, as pieces of text with a style each.

Compaction and other memory events are described in words; all other events show their fields.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bot.logs.reader import Event

Span: TypeAlias = tuple[str, str]

# "voice_context_compaction_completed" is the longest name that is frequent.
EVENT_WIDTH = 34
COMPACTION = "voice_context_compaction_"

_LEVEL_STYLES = {"debug": "dim", "info": "green", "warning": "yellow", "error": "bold red", "critical": "bold red"}
_LEVEL_NAMES = {"warning": "warn", "critical": "fatal"}
_TIME_STYLE, _QUIET, _FIGURE, _CURSOR, _TROUBLE = "dim", "dim", "cyan", "bold magenta", "red"
# Fields shown in the first columns or at the end, and the mark of each line of a log with `logs.speech`.
_HIDDEN = {"timestamp", "level", "event", "session_id", "speech"}
_NEWLINE = "\n"
# The fields that people look for first.
_FIRST = ("reason", "problem", "error_class", "error", "detail")


def format_event(event: Event, *, zone: tzinfo | None = None, with_session: bool = True) -> Iterator[Span]:
    """Yield the pieces of the event's line. `zone`: of the times shown, by default the machine's."""
    level = str(event.get("level", ""))
    name = _plain(event["event"])
    yield _time(event.get("timestamp"), zone), _TIME_STYLE
    yield f"  {_LEVEL_NAMES.get(level, level)[:5]:<5}  ", _LEVEL_STYLES.get(level, "")
    yield f"{name:<{EVENT_WIDTH}}", "bold" if name.startswith(COMPACTION) else ""
    formatter = _FORMATTERS.get(name)
    pieces = list(formatter(event)) if formatter is not None else list(_fields(event, _HIDDEN))
    if formatter is not None and event.get("process") is not None:
        pieces.append((f"process={_plain(event['process'])}", _QUIET))
    if with_session and event.get("session_id") is not None:
        pieces.append((f"session={_plain(event['session_id'])}", _QUIET))
    for text, style in pieces:
        yield f"  {text}", style


def _completed(event: Event) -> Iterator[Span]:
    old, new = _get(event, "old_cursor"), _get(event, "new_cursor")
    yield f"cursor {old} -> {new}", _CURSOR
    yield f"covered through turn {_get(event, 'covered_through_turn')}", ""
    yield f"summary {_get(event, 'summary_chars')} characters", ""
    if event.get("folded_note_count"):
        yield _count(event["folded_note_count"], "note") + " folded", ""
    yield _milliseconds(event.get("latency_ms")), _FIGURE
    if event.get("prompt_tokens") is not None or event.get("completion_tokens") is not None:
        yield f"{_get(event, 'prompt_tokens')} + {_get(event, 'completion_tokens')} tokens", _QUIET
    if event.get("unsourced"):
        yield f"{_get(event, 'unsourced')} unsourced", "yellow"
    yield from _run(event)


def _started(event: Event) -> Iterator[Span]:
    cursor, size = event.get("cursor"), event.get("batch_size")
    if isinstance(cursor, int) and isinstance(size, int) and size > 0:
        yield f"cursor {cursor} -> {cursor + size} to come", _CURSOR
        yield f"turns {cursor} to {cursor + size - 1}", ""
    else:
        yield f"cursor {_get(event, 'cursor')} stays", _CURSOR
        yield "notes alone", ""
    yield f"recent from turn {_get(event, 'recent_start')}", _QUIET
    if event.get("pending_note_count"):
        yield _count(event["pending_note_count"], "pending note"), ""
    model = _plain(event.get("model") or "")
    summariser = _plain(event.get("summariser") or "")
    yield f"by {summariser}" + (f" ({model})" if model and model != summariser else ""), _QUIET
    yield from _run(event)


def _skipped(event: Event) -> Iterator[Span]:
    yield f"cursor {_get(event, 'cursor')} stays", _CURSOR
    yield _get(event, "reason"), "yellow" if event.get("reason") == "backing_off" else ""
    yield f"{_count(event.get('total_turns', '?'), 'turn')}, {_get(event, 'eligible_count')} eligible", ""
    yield f"due over {_get(event, 'threshold')}", _QUIET
    if event.get("pending_note_count"):
        yield _count(event["pending_note_count"], "pending note"), ""
    if event.get("repeated"):
        yield f"{_count(event['repeated'], 'time')} more", _QUIET


def _failed(event: Event) -> Iterator[Span]:
    yield f"cursor {_get(event, 'cursor')} stays", _CURSOR
    yield f"{_get(event, 'error_class')}: {_get(event, 'error')}", _TROUBLE
    if event.get("model"):
        yield str(event["model"]), ""
    yield "retryable" if event.get("retryable") else "not retryable", ""
    if event.get("timeout"):
        yield "timed out", _TROUBLE
    yield _milliseconds(event.get("latency_ms")), _FIGURE
    again = event.get("next_retry_s")
    attempt = f"attempt {_get(event, 'attempt')}"
    yield f"{attempt}, again in {_number(again)} s" if again is not None else f"{attempt}, not tried again", ""
    if event.get("retryable") is False:
        yield "will fail again until it is repaired", _TROUBLE
    yield from _run(event)


def _run(event: Event) -> Iterator[Span]:
    if event.get("run_id") is not None:
        yield f"run={_plain(event['run_id'])}", _QUIET


def _context_built(event: Event) -> Iterator[Span]:
    """Describe what a model was sent: for which turn, its tokens, and which turns word for word."""
    answer = event.get("answer_to")
    yield "for nobody in particular" if answer is None else f"for turn {_plain(answer)}", _CURSOR
    most = event.get("max_input_tokens")
    total = event.get("total_tokens")
    if isinstance(total, int):
        of = f" of {most:,}" if isinstance(most, int) else ""
        yield f"{total:,}{of} tokens", _FIGURE
    yield f"turns {_get(event, 'seq_from')} to {_get(event, 'seq_to')} word for word", ""
    yield f"summary of revision {_get(event, 'summary_revision')}", _QUIET
    tokens = event.get("tokens")
    if isinstance(tokens, dict):
        yield ", ".join(f"{_plain(kind)} {_plain(cost)}" for kind, cost in tokens.items()), _QUIET
    evicted = event.get("evicted")
    if isinstance(evicted, list) and len(evicted) == 2:
        yield f"left out turns {_plain(evicted[0])} to {_plain(evicted[1])}", "yellow"


def _rolled(event: Event) -> Iterator[Span]:
    """Describe which turns the rolling mode dropped."""
    yield f"evicted {_count(event.get('evicted_count', '?'), 'message')}", "yellow"
    yield f"word for word from turn {_get(event, 'evicted_until')}", _CURSOR
    total = f"{_count(event.get('total_evicted_count', '?'), 'message')} so far"
    yield f"{total}, {_get(event, 'total_evicted_tokens')} tokens", _QUIET


def _mode_changed(event: Event) -> Iterator[Span]:
    yield f"{_get(event, 'old_mode')} -> {_get(event, 'new_mode')}", _CURSOR


def _called(event: Event) -> Iterator[Span]:
    """Describe a model call: its purpose, its cost, and the error of the token count."""
    outcome = event.get("outcome")
    yield f"{_get(event, 'purpose')} {_get(event, 'outcome')}", "" if outcome == "answered" else _TROUBLE
    billed = event.get("prompt_tokens")
    yield f"{'?' if billed is None else _plain(billed)} + {_get(event, 'completion_tokens')} tokens", _FIGURE
    if event.get("estimated_prompt_tokens") is not None:
        how = "exactly" if event.get("counted_exactly") else "by guess"
        yield f"counted {_get(event, 'estimated_prompt_tokens')} {how}", _QUIET
    if event.get("dropped_count"):
        yield f"{_count(event['dropped_count'], 'message')} left out", "yellow"
    if event.get("within_budget") is False:
        yield "over the budget, which is off", "yellow"
    if event.get("first_token_ms") is not None:
        yield f"first word after {_milliseconds(event['first_token_ms'])}", _FIGURE
    yield _milliseconds(event.get("duration_ms")), _FIGURE
    yield _get(event, "model"), _QUIET


def _tiers(event: Event) -> Iterator[Span]:
    """Describe the changes of a tier check."""
    yield f"{_count(event.get('segment_count', '?'), 'segment')} at turn {_get(event, 'total_turns')}", ""
    share = event.get("context_share")
    if isinstance(share, int | float):
        yield f"context {100 * share:.0f} % full", ""
    for key in ("queued", "released", "compressed", "archived"):
        if event.get(key):
            yield f"{_plain(event[key])} {key}", _CURSOR
    if event.get("compressed"):
        yield f"{_get(event, 'tokens_before')} -> {_get(event, 'tokens_after')} tokens", _FIGURE
    yield _milliseconds(event.get("duration_ms")), _FIGURE


_FORMATTERS: Mapping[str, Callable[[Event], Iterator[Span]]] = {
    COMPACTION + "completed": _completed,
    COMPACTION + "started": _started,
    COMPACTION + "skipped": _skipped,
    COMPACTION + "failed": _failed,
    "model_context_built": _context_built,
    "tiers_checked": _tiers,
    "context_rolled": _rolled,
    "compaction_mode_changed": _mode_changed,
    "model_call_finished": _called,
}


def _fields(event: Event, hidden: set[str]) -> Iterator[Span]:
    """Yield the fields of an event that has no formatter, problems first."""
    for key in (*_FIRST, *(each for each in event if each not in _FIRST)):
        if key not in event or key in hidden:
            continue
        value = event[key]
        if key == "exception":
            # Only the last line of a traceback, to keep one line for each event.
            yield f"exception={_plain(str(value).strip().rpartition(_NEWLINE)[2])}", _TROUBLE
        elif key.endswith("_ms"):
            yield f"{_plain(key.removesuffix('_ms'))} {_milliseconds(value)}", _FIGURE
        elif key in ("error", "problem", "exception"):
            yield f"{key}={_value(value)}", _TROUBLE
        else:
            yield f"{_plain(key)}={_value(value)}", "" if key in _FIRST else _QUIET


def _time(stamp: object, zone: tzinfo | None) -> str:
    """Return `11-20 04:11:05.123` in the zone, or the text itself if it is not a time."""
    try:
        moment = datetime.fromisoformat(str(stamp))
    except ValueError:
        return f"{_plain(stamp if stamp is not None else '?'):<18.18}"
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    local = moment.astimezone(zone)
    return f"{local:%m-%d %H:%M:%S}.{local.microsecond // 1000:03}"


def _get(event: Event, key: str) -> str:
    return _plain(event[key]) if event.get(key) is not None else "?"


def _count(number: object, noun: str) -> str:
    return f"{_plain(number)} {noun}" + ("" if number == 1 else "s")


def _milliseconds(value: object) -> str:
    return f"{round(value):,} ms" if isinstance(value, int | float) and value == value else f"{_plain(value)} ms"


def _number(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, int | float) else _plain(value)


def _value(value: object) -> str:
    if isinstance(value, str):
        text = _plain(value)
        return f'"{text}"' if " " in text or not text else text
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return _plain(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")) if isinstance(value, dict | list) else value
    )


def _plain(value: object) -> str:
    """Return printable text: a display name may contain newlines or terminal escape sequences."""
    text = value if isinstance(value, str) else str(value)
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)
