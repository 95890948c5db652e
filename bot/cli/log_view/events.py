"""How one event of the log is shown."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from compaction.log_events import MemoryEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.logs.reader import LogEvent

# A sentence fits on a line of most terminals.
MOST_CHARS: Final = 100

NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
# What the frequent events say. The words in braces are the event's fields, `?` if it has none.
SENTENCES: Final[Mapping[str, str]] = {
    MemoryEvent.RUN_STARTED: "folding {batch_size} turns from turn {cursor} by {summariser} {model}",
    MemoryEvent.RUN_COMPLETED: "folded turns {old_cursor} to {covered_through_turn} into {summary_chars} characters, "
    "{latency_ms}",
    MemoryEvent.RUN_FAILED: "folding failed at turn {cursor}, {retryable}, model {model}: {error_class}: {error}",
    MemoryEvent.RUN_SKIPPED: "nothing folded at turn {cursor}: {reason}, {eligible_count} of {total_turns} turns due",
    MemoryEvent.CONTEXT_BUILT: "prompt for turn {answer_to}: {total_tokens} of {max_input_tokens} tokens, turns "
    "{seq_from} to {seq_to} word for word",
    MemoryEvent.CONTEXT_ROLLED: "left out {evicted_count} messages, word for word from turn {evicted_until}",
    MemoryEvent.MODE_CHANGED: "memory mode {old_mode} -> {new_mode}",
    "model_call_finished": "{purpose} {outcome} by {model}: {prompt_tokens} + {completion_tokens} tokens, "
    "{duration_ms}",
    MemoryEvent.TIERS_CHECKED: "checked {segment_count} segments: {compressed} compressed, {archived} archived",
    "utterance_transcribed": "{speaker_id} spoke, {duration_s} s, text after {end_to_text_ms}",
    "utterance_dropped": "{speaker_id} not understood: {reason}, {duration_s} s",
}
_SPOKE, _ANSWERED = "{speaker_id} spoke, {reason}, {duration_s} s", "the bot answered turn {answer_to}"
# Fields shown for an event that has no sentence of its own.
_FIRST = ("reason", "problem", "error_class", "error", "detail")
_GRAVE = ("warning", "error", "critical")


def short_line(event: LogEvent, *, names: Mapping[str, str] = NO_NAMES, zone: tzinfo | None = None) -> str:
    """Return an event as a time and a sentence. `names`: of people, by their id. `zone`: of the time shown, by default
    the machine's.
    """
    level = str(event.get("level", ""))
    mark = f"{level}: " if level in _GRAVE else ""
    line = f"{_time(event, zone)} {mark}{_sentence(event, names)}"
    return line if len(line) <= MOST_CHARS else f"{line[: MOST_CHARS - 1]}…"


def _sentence(event: LogEvent, names: Mapping[str, str]) -> str:
    name = str(event["event"])
    pattern = SENTENCES.get(name)
    if name == "turn_recorded" and event.get("kind") in ("speech", "assistant"):
        pattern = _SPOKE if event["kind"] == "speech" else _ANSWERED
    if pattern is not None:
        return pattern.format_map(_Shown(event, names))
    why = [_plain(event[key]) for key in _FIRST if event.get(key) is not None]
    return _plain(": ".join([name.replace("_", " "), *why]))


class _Shown(dict[str, str]):
    """The fields of an event as a sentence has them."""

    def __init__(self, event: LogEvent, names: Mapping[str, str]) -> None:
        super().__init__()
        self._event = event
        self._names = names

    def __missing__(self, key: str) -> str:
        value = self._event.get(key)
        if value is None:
            return "?"
        if key in ("speaker_id", "user_id"):
            return _plain(self._names.get(str(value), value))
        if key == "retryable":
            return "retryable" if value else "not retryable"
        if key == "reason":
            return _plain(value).replace("_", " ")
        if isinstance(value, int | float) and not isinstance(value, bool):
            unit = " ms" if key.endswith("_ms") else ""
            return f"{value:,.0f}{unit}" if unit or isinstance(value, int) else f"{value:.1f}"
        return _plain(value)


def _time(event: LogEvent, zone: tzinfo | None) -> str:
    """Return the time in the zone, or the text itself if it is not a time."""
    stamp = str(event.get("timestamp", "?"))
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return _plain(stamp)[:14]
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(zone).strftime("%H:%M")


def _plain(value: object) -> str:
    """Return printable text: a display name may contain newlines or terminal escape sequences."""
    text = value if isinstance(value, str) else str(value)
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)
