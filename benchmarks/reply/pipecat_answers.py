"""Measures a Pipecat pipeline as `latency` measures the bot: the same recordings, model, voice and first words.

The pipeline runs in a process of its own and gets the sound itself. The bot's goes through Opus, encryption, UDP and a
jitter buffer, and back; so this comparison favours the pipeline.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.environment import PIPECAT_VOICE
from benchmarks.peers.pipe import peer_pipe
from benchmarks.reply.latency import ANSWER_TIMEOUT_S, GAP_S, WARM_UP, stages_between
from benchmarks.reply.room import SHORT_ANSWER
from benchmarks.reply.spread import spread
from benchmarks.stats import share_of
from bot.models.catalogue import VOICE_JOE, WHISPER_BASE
from bot.models.directory import ModelDirectory
from rehearsal.people.clip import FRAME_S, FRAME_SAMPLES, RATE_HZ, read_sound
from rehearsal.people.voiced import voiced_bounds
from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer
from voice.audio import LISTEN_RATE_HZ
from voice.speaking.resample import resample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.peers.pipe import PeerPipe
    from benchmarks.progress import Progress
    from benchmarks.reply.pauses import PauseListener, PauseResult
    from benchmarks.reply.recordings import SpeechRecording
    from benchmarks.report import Json
    from bot.settings import ModelsSettings

NAME = "pipecat"
# The moments that `pipecat_voice_peer` tells, and the stages that end with them.
MOMENTS = ("pause", "text", "turn", "model", "synthesis", "voice")
STAGES = ("pause_seen", "recogniser", "end_of_turn", "model", "synthesis", "sending")
REMARK = (
    "The Pipecat pipeline gets the recordings' own sound, and its answer is timed where it leaves the pipeline. "
    "Roomtone's goes through the whole of a local Discord (Opus, encryption, UDP, jitter buffer) both ways, and its "
    "CPU time has that Discord and the people in it. Both favour Pipecat."
)


async def measure_pipecat(
    recordings: Sequence[SpeechRecording],
    *,
    python: Path,
    listener: PauseListener,
    models: ModelsSettings,
    first_token_ms: float,
    progress: Progress,
) -> dict[str, Json]:
    """Speak each recording to the pipeline. `python`: of the environment of `PIPECAT_VOICE`. The figures are named as
    those of `measure_latency`. Raises PeerError.
    """
    ends = {one.path: await asyncio.to_thread(listener.hear, one.path) for one in set(recordings)}
    progress.step("answers of a Pipecat pipeline, one recording after the other", total=len(recordings))
    behaviour = ChatBehaviour(answer=lambda call: SHORT_ANSWER, first_token_delay_s=first_token_ms / 1000)
    directory = ModelDirectory(models.directory)
    told: list[Mapping[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="roomtone-pipecat-") as folder:
        async with LocalChatServer(behaviour) as server, peer_pipe(PIPECAT_VOICE, python) as peer:
            await peer.open(
                base_url=server.base_url,
                model=MODEL,
                whisper=str(directory.path(WHISPER_BASE).absolute()),
                voice=str((directory.path(VOICE_JOE) / VOICE_JOE.main_file.name).absolute()),
            )
            sound = Path(folder) / "recording.pcm"
            for _ in range(WARM_UP):
                await _speak(peer, recordings[0], ends[recordings[0].path], sound)
            for recording in recordings:
                told.append(await _speak(peer, recording, ends[recording.path], sound))
                progress.advance()
            version = peer.version
    pauses = sum(ends[recording.path].inside for recording in recordings)
    return {"version": version, "model_server_first_token_ms": first_token_ms, **pipecat_figures(told, pauses)}


def pipecat_figures(told: Sequence[Mapping[str, object]], pauses: int) -> dict[str, Json]:
    """Return the figures of these answers. `pauses`: how many there were inside all recordings."""
    answered = [one for one in told if one["total_ms"] is not None]
    stages = [_stages(one) for one in answered]
    cuts = [round(_number(one["cut"])) for one in told]
    return {
        "recordings": len(told),
        "unanswered": len(told) - len(answered),
        "answered_before_the_end": share_of(sum(cut > 0 for cut in cuts), len(told)),
        "pauses_inside": pauses,
        "pauses_cut": sum(cuts),
        "pauses_cut_share": share_of(sum(cuts), pauses),
        # The model was asked, and text of what was said came after that.
        "asked_without_the_last_words": sum(bool(one["late_text"]) for one in told),
        "cpu_s_an_answer": round(sum(_number(one["cpu_s"]) for one in told) / len(told), 3),
        "wall_s_an_answer": round(sum(_number(one["wall_s"]) for one in told) / len(told), 3),
        "total_ms": spread([_number(one["total_ms"]) for one in answered]),
        "stages_ms": {stage: spread([one[stage] for one in stages]) for stage in STAGES},
    }


async def _speak(peer: PeerPipe, recording: SpeechRecording, end: PauseResult, file: Path) -> Mapping[str, object]:
    """Let the pipeline hear a recording, and return what it tells. `file`: where the sound is written for it."""

    def write() -> float:
        sound = read_sound(recording.path)
        resample(sound, RATE_HZ, LISTEN_RATE_HZ).tofile(file)
        voiced = voiced_bounds(sound, FRAME_SAMPLES)
        return end.end_s if voiced is None else (voiced.last + 1) * FRAME_S

    voice_end_s = await asyncio.to_thread(write)
    return await peer.ask(
        "speak",
        file=str(file),
        voice_end_s=voice_end_s,
        end_s=end.end_s,
        answer_timeout_s=ANSWER_TIMEOUT_S,
        gap_s=GAP_S,
    )


def _stages(told: Mapping[str, object]) -> dict[str, float]:
    moments = told["moments_ms"]
    assert isinstance(moments, dict)
    return stages_between(0.0, [float(moments[name]) / 1000 for name in MOMENTS], STAGES)


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
