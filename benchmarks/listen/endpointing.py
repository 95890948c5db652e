"""Measures after how much silence an end of speech is known, and in how many pauses that is too soon.

Speech that nobody answers ends after the long silence; a pause that lasts as long is cut. Speech that would be answered
is answered after the gate, or with the text if that is later; who goes on after that was talked over if the answer's
first sound had been heard by then. The answer gives way, and what it costs is the words that were heard of it. All of
it is faster than real time and on the sound's own clock, so the figures do not depend on how busy a machine is; on
another processor a probability may differ. What the machine takes for text, synthesis and sending is in
`roomtone bench reply`, and here a fixed allowance.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.figures import cut_sample, number_at, sample_at, share_of, spread
from benchmarks.listen.observed_pauses import ObservedPause, PauseObserver, observe_all
from benchmarks.listen.operating_points import operating_points
from benchmarks.report import Json, Target, at_most
from voice.listening.end_policy import LONG_SILENCE_S, PauseEvidence, gate_s
from voice.listening.endpointing import ENDPOINTING, WINDOW_S, window_count
from voice.listening.vad import WINDOW_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.measuring import Progress
    from benchmarks.recordings import SpeechRecording
    from bot.settings import ModelsSettings

    Gate = Callable[[PauseEvidence], float]

PART = "endpointing"
# The entries of a set of which a room would answer a part alone.
ADDRESSED, UNADDRESSED = "addressed", "not_addressed"
# Each recording is observed twice, the second time shifted by half a window: where windows begin changes the decision
# for two pauses in seventy.
LEADS = (0, WINDOW_SAMPLES // 2)
# What an answer takes besides the gate, in seconds: from the beginning of recognition to the text of a short request,
# from there to the first sound of a synthesis, with a model that answers at once, and from there to the first voiced
# frame at a listener. The last is the median of `sending` in `roomtone bench reply`. The others are an allowance for
# two cores that nobody else uses; with a text that takes longer, answers begin later and talk over fewer.
TEXT_S, SYNTHESIS_S, SENDING_S = 0.17, 0.05, 0.03
# An answer is silent so long after its asker goes on: 0.2 s of their voice, and the frames that are on their way. The
# other is how fast a voice speaks.
SILENT_AFTER_S, WORDS_A_SECOND = 0.25, 2.75
# People who ask a machine for something pause in one of ten requests, and those who tell it something once or twice.
# With fewer pauses than this for each recording, answers are to be quick, and what is counted is recordings.
PAUSES_OF_A_REQUEST = 0.5
# Who is talked over loses nothing, and hears at most so many words of an answer that came too soon (P95).
CUT_SHARE, TALKED_OVER_SHARE, TALKED_OVER_OF_REQUESTS, WORDS_HEARD = 0.08, 1 / 6, 1 / 30, 2.0
# An answer is heard a tenth of a second after its gate.
KNOWN_P50_MS, KNOWN_P95_MS = 380.0, 650.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one of the two clocks does to pauses.

    `known_after_s`: of each end, from the end of the voice. `words_heard`: of each answer that talked somebody over;
    None where nobody answers.
    """

    inside: int
    cut: int
    known_after_s: tuple[float, ...]
    words_heard: tuple[float, ...] | None = None

    @property
    def talked_over(self) -> int | None:
        """Return in how many pauses somebody was talked over."""
        return None if self.words_heard is None else len(self.words_heard)

    def as_json(self) -> dict[str, Json]:
        figures: dict[str, Json] = {
            "pauses_inside": self.inside,
            "cut": self.cut,
            "cut_share": share_of(self.cut, self.inside),
            "end_known_after_ms": spread([seconds * 1000 for seconds in self.known_after_s]),
        }
        if self.words_heard is not None:
            figures |= {
                "talked_over": len(self.words_heard),
                "talked_over_share": share_of(len(self.words_heard), self.inside),
                "words_heard": spread(list(self.words_heard)),
            }
        return figures


def unanswered(pauses: Sequence[ObservedPause], silence_s: float = LONG_SILENCE_S) -> Outcome:
    """Return what a fixed silence does to speech that nobody answers."""
    needed = window_count(silence_s)
    inside = [pause.windows for pause in pauses if pause.windows is not None]
    known_s = tuple(pause.known_after_s(needed * WINDOW_S) for pause in pauses if pause.is_end)
    return Outcome(len(inside), sum(needed <= lasted for lasted in inside), known_s)


def answered(pauses: Sequence[ObservedPause], gate: Gate = gate_s) -> Outcome:
    """Return what a gate does to speech that a room would answer."""
    text_s = window_count(ENDPOINTING.pause_s) * WINDOW_S + TEXT_S
    inside = cut = 0
    known_s: list[float] = []
    words: list[float] = []
    for pause in pauses:
        needed = window_count(gate(pause.evidence))
        opened_s = needed * WINDOW_S
        if pause.windows is None:
            known_s.append(pause.known_after_s(max(opened_s, text_s)))
            continue
        inside += 1
        cut += needed <= pause.windows
        heard_s = pause.windows * WINDOW_S - max(opened_s, text_s + SYNTHESIS_S) - SENDING_S
        if heard_s > 0:
            words.append((heard_s + SILENT_AFTER_S) * WORDS_A_SECOND)
    return Outcome(inside, cut, tuple(known_s), tuple(words))


async def measure_endpointing(
    recordings: Sequence[SpeechRecording], models: ModelsSettings, progress: Progress
) -> dict[str, Json]:
    """Return the figures of these recordings. Raises `VoiceError` if a model that is needed is missing.

    Where a room would answer some of them and others not, each kind has an entry of its own.
    """
    observer = await asyncio.to_thread(PauseObserver, models)
    progress.step("pauses inside speech", total=len(recordings))
    measured: dict[str, dict[str, Json]] = {}
    for addressed, name in ((True, ADDRESSED), (False, UNADDRESSED)):
        if kind := [recording for recording in recordings if recording.addressed is addressed]:
            pauses = await asyncio.to_thread(observe_all, kind, observer, leads=LEADS, on_done=progress.advance)
            measured[name] = {
                "recordings": len(kind),
                "passes": len(LEADS),
                "end_of_turn_model": observer.hears_intonation,
                **both_clocks(pauses, addressed=addressed),
                "operating_points": operating_points(pauses),
            }
    return dict(measured) if len(measured) > 1 else next(iter(measured.values()))


def both_clocks(pauses: Sequence[ObservedPause], *, addressed: bool) -> dict[str, Json]:
    """Return the figures of the clock that applies, and as an entry those of the other one."""
    gate, silence = answered(pauses).as_json(), unanswered(pauses).as_json()
    if addressed:
        return {"addressed": True, **gate, "if_not_addressed": silence}
    return {"addressed": False, **silence, "if_addressed": gate}


def endpointing_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return the targets with their values in `ours`. Each is of one kind of speech."""
    told, said = _figures_of(ours, addressed=False), _figures_of(ours, addressed=True)
    heard = (number_at(said, "recordings") or 0) * (number_at(said, "passes") or 0)
    inside = number_at(said, "pauses_inside") or 0
    requests: Mapping[str, Json] = said if inside < PAUSES_OF_A_REQUEST * heard else {}
    talk = {} if requests else said
    talked_over = number_at(requests, "talked_over")
    return (
        at_most(
            "pauses that end a turn, of speech that nobody answers",
            "<= 8 %",
            number_at(told, "cut_share"),
            CUT_SHARE,
            cut_sample(told),
        ),
        at_most(
            "pauses in which somebody who is answered is talked over",
            "<= 17 %",
            number_at(talk, "talked_over_share"),
            TALKED_OVER_SHARE,
            sample_at(talk, "pauses", "pauses_inside"),
        ),
        at_most(
            "words heard of an answer that talked somebody over, P95",
            f"<= {WORDS_HEARD:.0f}",
            number_at(talk, "words_heard", "p95"),
            WORDS_HEARD,
            sample_at(talk, "answers", "words_heard", "count"),
        ),
        at_most(
            "requests in which somebody is talked over",
            "<= 3 %",
            None if talked_over is None else talked_over / heard,
            TALKED_OVER_OF_REQUESTS,
            sample_at(requests, "ends", "end_known_after_ms", "count"),
        ),
        *(
            at_most(
                f"the answer to a request may begin after, {percentile} ms",
                f"<= {most_ms:.0f} ms",
                number_at(requests, "end_known_after_ms", percentile.lower()),
                most_ms,
                sample_at(requests, "ends", "end_known_after_ms", "count"),
            )
            for percentile, most_ms in (("P50", KNOWN_P50_MS), ("P95", KNOWN_P95_MS))
        ),
    )


def _figures_of(ours: Mapping[str, Json], *, addressed: bool) -> Mapping[str, Json]:
    """Return the figures of one kind of speech; empty without any."""
    part = ours.get(PART)
    if not isinstance(part, dict):
        return {}
    found = part if part.get("addressed") is addressed else part.get(ADDRESSED if addressed else UNADDRESSED)
    return found if isinstance(found, dict) else {}
