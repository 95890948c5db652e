"""Hearing and speaking: converts Discord's packets to text, and text to Discord's packets.

Subpackages: `transport` (Discord's voice connection), `listening` (voice activity, endpointing, turn detection), `asr`
(speech recognition), `speaking` (text normalisation, voices, playback, barge-in), `realtime` (speech-to-speech),
`screen` (pictures of shared screens). Start at the `port` and settings of those that have them;
`transport.connection.DiscordVoiceConnection` joins a channel, and `hearing.HearingClient` does so for any bot of
discord.py. This package never imports `bot` or `compaction`.

What others may use is here; each name is imported when it is asked for. Everything else may change.

What they share: `audio` (the sound format), `errors`, `queue_figures`, `token_bucket`; for services, `endpoint` with
`endpoint_settings`, `server_keys`, `circuit_breaker` and `retry_pause`; for tasks,
`cancellation`; for threads, `daemon_thread`.
"""

import importlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice.errors import OpusMissingError, RemovedFromChannelError, VoiceConnectionError, VoiceError
    from voice.hearing import EventsDropped, HearingClient, HearingEvent
    from voice.listening.utterance import PauseBegan, PauseEnded, SpeechStarted, Utterance, UtteranceDropped
    from voice.listening.vad import SileroVad
    from voice.speaking.playback import Playback
    from voice.speaking.port import Speech
    from voice.transport.audio_events import SpeakerLeft, SpeechFrames, TalkspurtEnded
    from voice.transport.connection_events import Connected, Deaf, Lost, Recovering
    from voice.transport.counters import PacketCounters

# From 1.29 on, ONNX Runtime sends events about models and the machine to its makers and keeps an identifier, unless
# this is set before it starts (Privacy.md in its wheel). Processes that we start inherit it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_HOMES = {
    "voice.errors": ("OpusMissingError", "RemovedFromChannelError", "VoiceConnectionError", "VoiceError"),
    "voice.hearing": ("EventsDropped", "HearingClient", "HearingEvent"),
    "voice.listening.utterance": ("PauseBegan", "PauseEnded", "SpeechStarted", "Utterance", "UtteranceDropped"),
    "voice.listening.vad": ("SileroVad",),
    "voice.speaking.playback": ("Playback",),
    "voice.speaking.port": ("Speech",),
    "voice.transport.audio_events": ("SpeakerLeft", "SpeechFrames", "TalkspurtEnded"),
    "voice.transport.connection_events": ("Connected", "Deaf", "Lost", "Recovering"),
    "voice.transport.counters": ("PacketCounters",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = (
    "Connected",
    "Deaf",
    "EventsDropped",
    "HearingClient",
    "HearingEvent",
    "Lost",
    "OpusMissingError",
    "PacketCounters",
    "PauseBegan",
    "PauseEnded",
    "Playback",
    "Recovering",
    "RemovedFromChannelError",
    "SileroVad",
    "SpeakerLeft",
    "Speech",
    "SpeechFrames",
    "SpeechStarted",
    "TalkspurtEnded",
    "Utterance",
    "UtteranceDropped",
    "VoiceConnectionError",
    "VoiceError",
)


# A type checker sees the imports above, and would take any name for one with this.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name from its home, so that whoever wants one needs only what that one needs."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_HOME_OF[name]), name)
