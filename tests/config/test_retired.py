"""Retired keys: each is reported with its replacement, and only a renamed key with a wrong value stops the bot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from config.errors import ConfigError
from config.load import load
from config.retired import RETIRED, RETIRED_SECTIONS
from config.schema import INTERNAL, SETTINGS, WELL_KNOWN_VARIABLES, Settings, variable_of

# Every key of default.toml before the number of settings was reduced. This list never changes: people's files still
# contain these keys.
FORMER_KEYS = {
    "discord": "token api_base gateway ca_file message_content connect_timeout_s",
    "room": "leave_when_empty_s resume_within_s notice",
    "transport": (
        "connect_timeout_s give_up_after_s jitter_hold_s talkspurt_silence_s max_concealed_frames batch_s "
        "max_waiting_s dave_failures_before_recovery deaf_after_s opus_bitrate_bps opus_complexity "
        "opus_expected_loss_percent"
    ),
    "listening": (
        "speech_on speech_off min_speech_s pre_roll_s end_silence_s turn_model pause_s finished_probability "
        "finished_silence_s unfinished_silence_s recognise_ahead tail_s max_utterance_s moment_wait_s "
        "late_packets_s near_silence_rms near_silence_peak near_silence_active_ratio"
    ),
    "asr": (
        "engine base_url api_key model timeout_s model_dir device compute_type cpu_threads language "
        "fallback_language beam_size queue_size compute_timeout_s load_timeout_s glossary_words "
        "glossary_max_chars"
    ),
    "speaking": (
        "engine stand_in base_url api_key model voice_name audio_format timeout_s stall_timeout_s speed "
        "variety volume duck_after_s duck_level stop_after_s blocked_words moderation moderation_model "
        "moderation_timeout_s pronunciations"
    ),
    "realtime": (
        "enabled base_url api_key model transcription_model voice mode session_s renew_patience_s "
        "connect_timeout_s hear_timeout_s reply_timeout_s failures_before_fallback retry_after_s"
    ),
    "screen": (
        "enabled reader model base_url api_key model_timeout_s active_interval_s idle_interval_s "
        "max_looks_per_hour busy_share link_valid_s resume_within_s max_shares commentary commentary_every_s "
        "commentary_quiet_s"
    ),
    "web": "enabled host port public_url trusted_proxies",
    "brain": "name wake_names instructions guild_instructions head_start reply_timeout_s",
    "participation": (
        "voice_mode engagement_s quiet_thought_after_minutes quiet_thought_every_minutes max_calls_per_hour "
        "max_tokens_per_hour max_spoken_s_per_hour"
    ),
    "llm": (
        "base_url api_key model max_output_tokens first_token_timeout_s total_timeout_s completion_timeout_s "
        "fallback_models"
    ),
    "tools": "max_steps filler filler_after_s memory attachments attachment_kb links link_words",
    "mcp": "servers",
    "compaction": (
        "mode rolling_target_utilization rolling_min_keep_messages rolling_eviction_note trigger summariser "
        "timeout_s max_output_tokens retry_base_s retry_max_s failures_before_degraded "
        "ending_deadline_s store_timeout_s"
    ),
    "budget": (
        "enabled max_context_tokens reserved_output_tokens trim_strategy preserve_system_prompt "
        "preserve_recent_turns summarize_on_truncate token_estimator max_tool_output_age "
        "max_tool_output_tokens preserve_recent_files"
    ),
    "tiers": "enabled prune_after_days retention_days",
    "people": "enabled facts_each section_tokens",
    "recall": ("enabled scope quotes quote_tokens wait_ms embedder base_url api_key model timeout_s max_vectors"),
    "models": "directory index_url",
    "storage": "data_dir synchronous busy_timeout_s min_free_mb",
    "logs": "level console_level max_file_mb keep_files speech",
}
FORMER = {(section, key) for section, keys in FORMER_KEYS.items() for key in keys.split()}
# Keys that were added after that, and retired again. Whoever retires one more adds it here.
ADDED_LATER = {("listening", "eager_recognition")}


def test_every_former_key_is_a_setting_or_retired() -> None:
    """Every former key is either a setting or retired, and no other key is listed as retired."""
    assert len(FORMER) == 195
    assert (FORMER | ADDED_LATER) - set(SETTINGS) == set(RETIRED)


def test_retired_keys_are_no_settings_and_their_successors_are() -> None:
    """A retired key is not a setting, and its successor is one."""
    assert not set(RETIRED) & set(SETTINGS)
    for key, retired in RETIRED.items():
        assert retired.fate.endswith("."), key
        assert (retired.successor is None) or retired.successor in SETTINGS, key


@pytest.mark.parametrize("key", sorted(RETIRED), ids=".".join)
def test_a_retired_key_is_named_and_harmless(
    key: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A retired key in a file or a variable gives one sentence with its place, and the defaults apply.

    A renamed key keeps its value, so a wrong value of it is an error under the new name.
    """
    written = '"auto"' if RETIRED[key].values is not None else "{}"
    (tmp_path / "roomtone.toml").write_text(f"[{key[0]}]\n{key[1]} = {written}\n", "utf-8")
    environ = {variable_of(key): "auto"} if RETIRED[key].values is not None else {}
    told: list[str] = []
    if RETIRED[key].values is None:
        with pytest.raises(ConfigError, match=".".join(RETIRED[key].successor or ())):
            load(directory=tmp_path, environ=environ, notify=told.append)
    else:
        assert load(directory=tmp_path, environ=environ, notify=told.append) == Settings()
    name = ".".join(key)
    assert told[0].startswith(f"{name} in roomtone.toml line 2 is no longer a setting: ")
    assert told[1:] == [each for each in told[1:] if each.startswith(f"{name} in ROOMTONE_{key[0].upper()}__")]
    assert len(told) == 1 + len(environ)
    assert capsys.readouterr() == ("", "")


def test_what_a_retired_key_is_fixed_at_is_the_value_in_the_code() -> None:
    """Tests, rehearsals and benchmarks still set some retired keys; the others find the value that people are told."""
    told = {key: re.match(r"it is fixed at ([\w.-]*\w)", retired.fate) for key, retired in RETIRED.items()}
    fixed = {key: (found[1], INTERNAL[key].default) for key, found in told.items() if found and key in INTERNAL}
    assert len(fixed) > 20
    assert {key: both for key, both in fixed.items() if not _is_written(*both)} == {}


def _is_written(text: str, value: object) -> bool:
    """Return whether a sentence names `value` as `text`."""
    match value:
        case bool():
            return text == str(value).lower()
        case int() | float():
            return float(text) == value
        case _:
            return text == str(value)


def test_a_renamed_key_keeps_its_value(tmp_path: Path) -> None:
    """A renamed key keeps its value, also from an environment variable; the new name wins if both are set."""
    (tmp_path / "roomtone.toml").write_text(
        '[speaking]\nstand_in = "none"\n[brain]\nhead_start = false\n[recall]\nmax_vectors = 5000\n', "utf-8"
    )
    settings = load(directory=tmp_path, environ={}, notify=lambda _: None)
    assert (settings.speaking.fallback, settings.brain.preemptive_reply) == ("none", False)
    assert settings.recall.vectors_in_memory == 5000
    settings = load(
        directory=tmp_path,
        environ={"ROOMTONE_SPEAKING__STAND_IN": "none", "ROOMTONE_SPEAKING__FALLBACK": "piper"},
        notify=lambda _: None,
    )
    assert settings.speaking.fallback == "piper"


@pytest.mark.parametrize(
    ("line", "successor", "value"),
    [
        ("[web]\nenabled = false", ("screen", "enabled"), False),
        ("[screen]\ncommentary = false", ("screen", "commentary_every_s"), 0),
        ("[tools]\nlink_words = []", ("tools", "links"), False),
        ("[screen]\nmodel = 'eyes'\nreader = 'ocr'", ("screen", "model"), ""),
        ("[web]\nenabled = true", ("screen", "enabled"), True),
    ],
)
def test_what_was_switched_off_stays_off(tmp_path: Path, line: str, successor: tuple[str, str], value: object) -> None:
    """The value of a retired switch is passed on to the setting that replaced it."""
    (tmp_path / "roomtone.toml").write_text(line, "utf-8")
    settings = load(directory=tmp_path, environ={}, notify=lambda _: None)
    assert getattr(getattr(settings, successor[0]), successor[1]) == value


def test_the_notice_goes_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a `notify` callback, the notice goes to stderr, because the logs are not set up yet."""
    (tmp_path / "roomtone.toml").write_text("[transport]\nopus_complexity = 9\n", "utf-8")
    load(directory=tmp_path, environ={})
    told = "transport.opus_complexity in roomtone.toml line 2 is no longer a setting: it is fixed at 5. Delete it.\n"
    assert capsys.readouterr().err == told


def test_a_key_that_never_was_stays_a_mistake(tmp_path: Path) -> None:
    """A key that never existed is a mistake, also in a retired section; so is a retired section that is not a table."""
    assert ("transport",) in RETIRED_SECTIONS
    for text in ("[transport]\nnonsense = 1\n", "transport = 3\n"):
        (tmp_path / "roomtone.toml").write_text(text, "utf-8")
        with pytest.raises(ConfigError, match=r"transport.*is not a setting"):
            load(directory=tmp_path, environ={})


def test_no_file_or_variable_sets_an_internal_field(tmp_path: Path) -> None:
    """Internal fields can only be set by overrides, which rehearsals and benchmarks use. One is a secret that has only
    its own variable.
    """
    for key in INTERNAL:
        assert key in RETIRED or key in WELL_KNOWN_VARIABLES.values(), key
    settings = load(directory=tmp_path, environ={"ROOMTONE_SPEAKING__VARIETY": "0"}, notify=lambda _: None)
    assert settings.speaking.variety == 1.0
    assert load(directory=tmp_path, environ={}, overrides={"speaking.variety": 0.0}).speaking.variety == 0.0


def test_few_settings() -> None:
    """There are at most 105 settings, so that an operator can know them; other values are constants in the code."""
    assert len(SETTINGS) <= 105


def test_the_docs_name_no_retired_key() -> None:
    """No documentation page names a retired key, except the settings reference."""
    docs = Path(__file__).parents[2]
    pages = [docs / "README.md", *(page for page in (docs / "docs").rglob("*.md") if page.name != "settings.md")]
    named = {
        (page.name, word)
        for page in pages
        for word in re.findall(r"\b[a-z]+\.[a-z_]+\b", page.read_text("utf-8"))
        if tuple(word.split(".")) in RETIRED
    }
    assert not named
