"""An event of each kind that is counted, and the samples that come of it."""

from __future__ import annotations

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from bot import events
from bot.events import ReplyOutcome, SecondHearing, SpokenText
from bot.health import Health
from bot.monitoring.metrics import Metrics
from bot.texts.text import Text
from compaction.model import Seq, Turn, TurnKind
from tests.fakes.clock import FakeClock
from voice.asr.port import Recognition
from voice.listening.utterance import Utterance
from voice.queue_figures import QueueFigures

# What nobody must find in the metrics.
WORDS = "the walrus sleeps"
ADA = 20010000000000001
SPOKEN = SpokenText(
    Utterance("u1", ADA, 10.0, 12.0, 12.4, np.zeros(16, np.int16)),
    Recognition(WORDS, "en", -0.1, 1.0, 0.0, 2.0, 0.1),
    begun_at=12.5,
    text_at=12.8,
)
HAPPENED: tuple[events.Event, ...] = (
    events.RoomOpened("20261121-093109-ab5739", 500, 600, False, 9.0),
    events.SoundReceived(0.07, 10.0),
    events.UtteranceTranscribed("u1", ADA, WORDS, 10.0, 12.0, 12.8),
    events.SpeechDropped("u2", ADA, "too_short", WORDS, 1.0, 2.0, 3.0),
    events.SecondHearingEnded(ADA, SecondHearing.MENDED, 3.0),
    events.TurnRecorded(Turn(Seq(0), TurnKind.SPEECH, 10.0, 12.0, ()), 13.0, (SPOKEN,)),
    events.TurnDecided(0, SPOKEN, True, "named", 12.9, 12.95, 12.96),
    events.ReplyFinished(0, ReplyOutcome.SPOKEN, 12.0, 13.0, 13.6, 0.2, 14.0, 17.0),
    events.ReplyFinished(0, ReplyOutcome.SKIPPED, None, 13.0, None, None, None, 17.0),
    events.CompactionLanded(0, 10, 9, WORDS, 1500.0, 20.0),
    events.CompactionFailed(10, WORDS, 21.0, 400.0),
    events.Problem("reply", Text(WORDS), 22.0),
    events.QueuesMeasured((QueueFigures("recognise", 3, 68, {"overloaded": 2}), QueueFigures("store", 1, None)), 23.0),
    events.ConnectionChanged(
        "connected", {"received": 10, "decoded": 7, "late": 1, "lost": 2, "recovered": 1}, 24.0, 0.03
    ),
    events.RoomClosed("20261121-093109-ab5739", "stopped", 25.0),
)


def samples(metrics: Metrics, beginning: str = "") -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return all samples whose names begin so, by name and labels. To parse all takes a tenth of a second."""
    text = "\n".join(line for line in metrics.scrape()[0].decode().splitlines() if line.startswith(beginning))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    """Return the value of one sample, without the name's prefix; 0 if there is none."""
    return samples(metrics, f"roomtone_{name}").get((f"roomtone_{name}", frozenset(labels.items())), 0.0)


def new_metrics() -> Metrics:
    """Return the metrics of a healthy bot."""
    health = Health(FakeClock())
    health.started()
    return Metrics(health)
