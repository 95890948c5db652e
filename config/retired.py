"""Lists settings that no longer exist, and what became of each.

A retired key in an operator's file or environment is not a mistake: `load` reports what became of the key and
continues. If another key replaced it, that key gets the value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.schema import Key


@dataclass(frozen=True, slots=True)
class Retired:
    """A retired key. `fate` completes the sentence `<key> in <place> is no longer a setting: …`.

    `successor`: the key that replaced it. `values` maps the old values that the successor takes over (as lower-case
    text) to their new values; None takes over every value unchanged.
    """

    fate: str
    successor: Key | None = None
    values: Mapping[str, object] | None = field(default_factory=dict)


def _fixed(value: str) -> Retired:
    return Retired(f"it is fixed at {value}. Delete it.")


def _renamed(new: str) -> Retired:
    return Retired(f"it is called {new} now, and that gets the value. Rename it.", tuple(new.split(".")), None)


def _replaced(new: str, values: Mapping[str, object], remedy: str) -> Retired:
    return Retired(f"{remedy} Until then {', '.join(values)} is obeyed.", tuple(new.split(".")), values)


_BY_NAME: dict[str, Retired] = {
    "discord.gateway": Retired("it follows discord.api_base. Delete it."),
    "discord.connect_timeout_s": _fixed("30 s, in which discord.py's own reconnects fit"),
    "transport.connect_timeout_s": _fixed("30 s"),
    "transport.give_up_after_s": _fixed("300 s"),
    "transport.jitter_hold_s": _fixed("0.06 s"),
    "transport.talkspurt_silence_s": _fixed("0.2 s"),
    "transport.max_concealed_frames": _fixed("5 frames"),
    "transport.batch_s": _fixed("0.02 s"),
    "transport.max_waiting_s": _fixed("10 s"),
    "transport.dave_failures_before_recovery": _fixed("36 frames"),
    "transport.deaf_after_s": _fixed("3 s"),
    "transport.opus_bitrate_bps": _fixed("64000 bit/s, or the channel's bitrate where that is less"),
    "transport.opus_complexity": _fixed("5"),
    "transport.opus_expected_loss_percent": _fixed("10 percent"),
    "room.resume_within_s": _fixed("1800 s"),
    "listening.speech_on": _fixed("0.5"),
    "listening.speech_off": _fixed("0.35"),
    "listening.min_speech_s": _fixed("0.25 s"),
    "listening.pre_roll_s": _fixed("0.3 s"),
    "listening.end_silence_s": _fixed("0.7 s; with the end-of-turn model it is 0.42 to 1.1 s"),
    "listening.pause_s": _fixed("0.128 s"),
    "listening.finished_probability": Retired("it is weighed with the recognised text now. Delete it."),
    "listening.finished_silence_s": _fixed("0.42 s"),
    "listening.unfinished_silence_s": _fixed("1.1 s"),
    "listening.recognise_ahead": _fixed("true"),
    "listening.eager_recognition": _fixed("true"),
    "listening.tail_s": _fixed("0.128 s"),
    "listening.max_utterance_s": _fixed("30 s, all that the recogniser hears at once"),
    "listening.moment_wait_s": _fixed("10 s"),
    "listening.late_packets_s": _fixed("0.02 s"),
    "listening.near_silence_rms": _fixed("0.003"),
    "listening.near_silence_peak": _fixed("0.012"),
    "listening.near_silence_active_ratio": _fixed("0.01"),
    "asr.model_dir": Retired(
        "it is called asr.model now, which names a folder in models.directory or anywhere else, and gets the value. "
        "Rename it, or delete it if the model is models.directory/whisper-base.",
        ("asr", "model"),
        None,
    ),
    "asr.timeout_s": _fixed("6 s"),
    "asr.compute_type": _fixed("int8 on the CPU and float16 on CUDA, or the fastest that the device has"),
    "asr.beam_size": _fixed("1"),
    "asr.queue_size": _fixed("32"),
    "asr.compute_timeout_s": _fixed("30 s"),
    "asr.load_timeout_s": _fixed("120 s"),
    "asr.glossary_max_chars": _fixed("300 bytes of UTF-8"),
    "speaking.stand_in": _renamed("speaking.fallback"),
    "speaking.timeout_s": _fixed("8 s"),
    "speaking.stall_timeout_s": _fixed("2 s"),
    "speaking.variety": _fixed("1, as the voice's makers chose"),
    "speaking.volume": _fixed("1; in Discord everybody sets the bot's volume for themselves"),
    "speaking.duck_after_s": _fixed("0.2 s"),
    "speaking.duck_level": _fixed("0.3"),
    "speaking.stop_after_s": _fixed("0.7 s"),
    "speaking.moderation_model": _fixed("omni-moderation-latest"),
    "speaking.moderation_timeout_s": _fixed("3 s"),
    "realtime.session_s": _fixed("3540 s, a minute less than OpenAI allows"),
    "realtime.renew_patience_s": _fixed("45 s"),
    "realtime.connect_timeout_s": _fixed("10 s"),
    "realtime.hear_timeout_s": _fixed("8 s"),
    "realtime.reply_timeout_s": _fixed("10 s"),
    "realtime.failures_before_fallback": _fixed("3"),
    "realtime.retry_after_s": _fixed("60 s"),
    "screen.reader": _replaced(
        "screen.model", {"ocr": ""}, "the text is read unless screen.model names a model. Set or delete that instead."
    ),
    "screen.model_timeout_s": _fixed("15 s"),
    "screen.active_interval_s": _fixed("10 s; screen.max_looks_per_hour bounds the cost"),
    "screen.idle_interval_s": _fixed("30 s"),
    "screen.busy_share": _fixed("0.3 of one processor core"),
    "screen.link_valid_s": _fixed("300 s"),
    "screen.resume_within_s": _fixed("45 s"),
    "screen.max_shares": _fixed("4"),
    "screen.commentary": _replaced(
        "screen.commentary_every_s", {"false": 0}, "set screen.commentary_every_s = 0 instead."
    ),
    "screen.commentary_quiet_s": _fixed("2.2 s"),
    "web.enabled": Retired(
        "the pages are always served, because the dashboard is one of them; web.host says to whom. For a bot that "
        "watches no screens set screen.enabled = false instead. Until then false has that effect.",
        ("screen", "enabled"),
        {"false": False},
    ),
    "brain.reply_timeout_s": _fixed("20 s"),
    "brain.head_start": _renamed("brain.preemptive_reply"),
    "participation.quiet_thought_every_minutes": _fixed("30 minutes"),
    "llm.first_token_timeout_s": Retired(
        "it is fixed at 10 s; then the next of llm.fallback_models is asked. Delete it, and for a slow local model "
        "choose a smaller llm.model."
    ),
    "llm.total_timeout_s": _fixed("60 s"),
    "llm.completion_timeout_s": _fixed("600 s"),
    "tools.max_steps": _fixed("2"),
    "tools.filler_after_s": _fixed("1 s"),
    "tools.memory": Retired("memory search is always offered, within recall.scope. Delete it."),
    "tools.attachment_kb": _fixed("512 kB"),
    "tools.link_words": _replaced(
        "tools.links",
        {"[]": False},
        "an order is recognised without a list of words, and where the bot is not certain it asks. Delete it, or set "
        "tools.links = false if it is empty.",
    ),
    "compaction.rolling_target_utilization": _fixed("0.8"),
    "compaction.rolling_min_keep_messages": _fixed("10"),
    "compaction.rolling_eviction_note": _fixed("true"),
    "compaction.trigger": _fixed("generation"),
    "compaction.max_output_tokens": _fixed("1400 tokens"),
    "compaction.retry_base_s": _fixed("2 s"),
    "compaction.retry_max_s": _fixed("120 s"),
    "compaction.failures_before_degraded": _fixed("3"),
    "compaction.ending_deadline_s": _fixed("3 s"),
    "compaction.store_timeout_s": _fixed("10 s"),
    "tiers.enabled": Retired(
        "segments are always compressed, unless `roomtone memory freeze` leaves them out. Delete it."
    ),
    "tiers.prune_after_days": _fixed("30 days"),
    "people.facts_each": _fixed("6"),
    "people.section_tokens": _fixed("300 tokens"),
    "recall.quote_tokens": _fixed("400 tokens"),
    "recall.wait_ms": _fixed("100 ms"),
    "recall.timeout_s": _fixed("10 s"),
    "recall.max_vectors": _renamed("recall.vectors_in_memory"),
    "models.index_url": Retired("pip's own settings say which index is asked. Set PIP_INDEX_URL instead."),
    "storage.synchronous": _fixed("full, so that a stored turn survives a power cut"),
    "storage.busy_timeout_s": _fixed("5 s"),
    "storage.min_free_mb": _fixed("500 MB"),
    "logs.console_level": _fixed("warning; `roomtone tail` shows the rest of the log"),
    "logs.max_file_mb": _fixed("20 MB"),
    "logs.keep_files": _fixed("5 files"),
}
RETIRED: dict[Key, Retired] = {tuple(name.split(".")): fate for name, fate in _BY_NAME.items()}
RETIRED_SECTIONS: frozenset[Key] = frozenset(key[:-1] for key in RETIRED)


def describe_retired(key: Key, place: str) -> str:
    """Return the sentence about a retired key that is set in `place`."""
    return f"{'.'.join(key)} in {place} is no longer a setting: {RETIRED[key].fate}"


def successor_value(key: Key, value: object) -> tuple[Key, object] | None:
    """Return the successor of a retired key and the value it gets from `value`, or None if no key takes over this
    value.
    """
    retired = RETIRED[key]
    if retired.successor is None:
        return None
    if retired.values is None:
        return retired.successor, value
    text = str(value).strip().lower()
    return (retired.successor, retired.values[text]) if text in retired.values else None
