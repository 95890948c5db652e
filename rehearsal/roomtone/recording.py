"""The sound of a rehearsal as one file, with captions beside it: the channel as one of its people heard it."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from bot.memory.transcript_files import TranscriptFormat, TranscriptHead, write_transcript
from compaction.model import Seq, Turn, TurnKind, TurnPart
from rehearsal.errors import RehearsalError
from rehearsal.people.clip import encode_ogg
from rehearsal.runner.local_environment import LocalEnvironment
from rehearsal.runner.record import RunRecord
from rehearsal.script.scenario import Scenario

# The name of the file in the folder of a trial.
RECORDING = "recording.ogg"
# Speech needs no more; a minute has 200 kB.
BITRATE_BPS = 24_000
# Silence before the first word and after the last.
MARGIN_S = 1.0


def captions_of(recording: Path) -> Path:
    """Return the file with the captions, where players look for it."""
    return recording.with_suffix(f".{TranscriptFormat.WEBVTT}")


def write_recording(file: Path, scenario: Scenario, record: RunRecord, environment: LocalEnvironment) -> None:
    """Write what was heard (Ogg Opus, mono) by who was there longest, and what was said as WebVTT beside it. Blocking.

    Raises `RehearsalError` if the files cannot be written.
    """
    said = _said(scenario.bot.name, record)
    since = min((turn.started_at for turn in said), default=record.live_at) - MARGIN_S
    until = max((turn.ended_at for turn in said), default=record.ended_at) + MARGIN_S
    sound = environment.everything_heard(_longest_there(record), since, until)
    head = TranscriptHead(scenario.title, scenario.guild, scenario.channel, since, until)
    captions = write_transcript(said, head, TranscriptFormat.WEBVTT, zone=UTC)
    try:
        file.write_bytes(encode_ogg(iter([sound]), bitrate_bps=BITRATE_BPS))
        captions_of(file).write_bytes(captions.content)
    except OSError as error:
        raise RehearsalError(
            f"The sound could not be written to {file}: {error.strerror or error}. Name a file in a folder that exists "
            "and has room, for example --sound evening.ogg."
        ) from error


def _longest_there(record: RunRecord) -> int:
    def stayed_s(user_id: int) -> float:
        return sum(min(left, record.ended_at) - entered for entered, left in record.presence[user_id])

    return max(record.presence, key=stayed_s, default=0)


def _said(bot_name: str, record: RunRecord) -> list[Turn]:
    """Return what people and the bot said, as it began. Times are monotonic seconds."""
    lines = [(line.voice_started_at, line.voice_ended_at, line.speaker, line.reference) for line in record.lines]
    lines += [(reply.first_audio_at, reply.ended_at, bot_name, reply.text) for reply in record.replies]
    return [
        Turn(Seq(number), TurnKind.SPEECH, begun, ended, (TurnPart("", who, text),))
        for number, (begun, ended, who, text) in enumerate(sorted(lines))
    ]
