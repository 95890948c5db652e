"""`roomtone bench reply`: how long people wait for a reply, and how fast the bot stops. It only runs the parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.asr.questions import FOLDER, make_questions
from benchmarks.figures import counted_of, number_at, sample_at
from benchmarks.measuring import Progress, measuring
from benchmarks.recordings import load_recordings
from benchmarks.reply.interruption import measure_interruption
from benchmarks.reply.latency import measure_latency, measure_speakers
from benchmarks.reply.two_parts import measure_two_parts
from benchmarks.report import BenchmarkReport, Json, Target, at_least, at_most
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


_SYNTHETIC = (
    "Synthetic voices spoke. Their ends are easier to tell than people's. `--speech DIR` takes recordings of people."
)
QUESTIONS = "short questions"
# Of a set: how soon half of the answers begin, how soon 95 % do (ms), and what one takes of the processor (s).
_GOALS = {QUESTIONS: (480, 800, 0.8), "commands": (520, 850, 1.0)}
_GOAL_OF_OTHERS = (700, 1150, 2.5)
_READ = "Real recordings are mostly read speech, whose sentences break off where nobody talking freely would stop."


@dataclass(frozen=True, slots=True)
class ReplyBenchOptions:
    """The options of one run. The defaults are a full run.

    `speech`: a folder of real recordings with a manifest; without it the audio of the bundled scenarios is used.
    `questions`: the short questions of `benchmarks.asr` are asked instead; voices make those that are missing.
    `recordings`: how many recordings are answered one by one; 0 means all. `crowd_recordings`: how many are spoken by
    four people at the same time. `interruptions`: how many answers are interrupted. `first_token_ms`: the delay of the
    model's server before its first token, which is reported separately. `only`: the parts to measure; empty means all.
    """

    speech: Path | None = None
    questions: bool = False
    # Fewer than fifty cases say little about a share or a tail.
    recordings: int = 50
    crowd_recordings: int = 52
    interruptions: int = 50
    first_token_ms: float = 0.0
    only: tuple[str, ...] = ()

    @classmethod
    def quick(cls, **chosen: object) -> ReplyBenchOptions:
        """Return the options for a short run of a minute or two, which only checks that everything works."""
        return cls(**{"recordings": 2, "crowd_recordings": 4, "interruptions": 1, **chosen})  # type: ignore[arg-type]


async def run(
    options: ReplyBenchOptions, progress: Progress, *, on_part: Callable[[BenchmarkReport], None] = lambda _: None
) -> BenchmarkReport:
    """Measure the chosen parts. `on_part` gets the unfinished report after each part.

    Raises `ScenarioError` for a folder without a manifest, and the bot's own errors if one of its models is missing.
    """
    if options.questions:
        await make_questions(FOLDER, load().models, progress)
    said = load_recordings(FOLDER if options.questions else options.speech)
    with measuring("reply", reply_targets, progress, on_part, options.only) as found:
        found.remark(_READ if said.real else _SYNTHETIC)
        if found.wants("latency"):
            asked = said.some(options.recordings)
            answers = await measure_latency(asked, first_token_ms=options.first_token_ms, progress=progress)
            found.part_measured("answers", {"set": QUESTIONS if options.questions else said.name, **answers})
        if found.wants("speakers"):
            speakers = await measure_speakers(said.some(options.crowd_recordings), progress=progress)
            found.part_measured("four speakers", speakers)
        if found.wants("interruption"):
            stopped = await measure_interruption(options.interruptions, progress=progress)
            found.part_measured("interruptions", stopped)
        if found.wants("two-parts"):
            parts = await measure_two_parts(said.some(options.recordings), load().models, progress=progress)
            found.part_measured("two parts", {"set": said.name, **parts})
    return found.report()


def reply_targets(ours: Mapping[str, Json]) -> tuple[Target, ...]:
    """Return every target with its measured value. A target that this run could not measure says so."""
    silent = number_at(ours, "answers", "unanswered")
    said = counted_of(ours, "recordings", ("answers", "recordings"), silent)
    whole_path = sample_at(ours, "recordings", "answers", "heard", "recordings")
    lost = number_at(ours, "four speakers", "without_text")
    utterances = sample_at(ours, "utterances", "four speakers", "utterances")
    spoke_on = number_at(ours, "interruptions", "not_measured")

    answers = ours.get("answers")
    of_set = str(answers.get("set")) if isinstance(answers, dict) else ""
    p50_ms, p95_ms, cpu_s = _GOALS.get(of_set, _GOAL_OF_OTHERS)

    def begun(percentile: str, most_ms: float) -> Target:
        words = f"end of speech to first voiced sound, {percentile} ms"
        measured = number_at(ours, "answers", "besides_the_model_server_ms", percentile.lower())
        return at_most(words, f"<= {most_ms:,} ms", measured, most_ms, said, failed=silent)

    return (
        begun("P50", p50_ms),
        begun("P95", p95_ms),
        at_most("CPU of an answer, s", f"<= {cpu_s} s", number_at(ours, "answers", "cpu_s_an_answer"), cpu_s, said),
        at_most(
            "an answer waited for its text after the end was sure, P95 ms",
            "<= 600 ms",
            number_at(ours, "answers", "stages_ms", "recogniser", "p95"),
            600,
            said,
            failed=silent,
        ),
        at_most(
            "recordings without any text, through Discord's whole path",
            "0",
            number_at(ours, "answers", "heard", "without_text"),
            0,
            whole_path,
        ),
        at_most(
            "texts unlike what was said, through Discord's whole path",
            "0",
            number_at(ours, "answers", "heard", "unlike_what_was_said"),
            0,
            whole_path,
        ),
        at_most(
            "final text after the end was sure, four speakers, P95 ms",
            "<= 600 ms",
            number_at(ours, "four speakers", "final_text_ms", "p95"),
            600,
            utterances,
            failed=lost,
        ),
        at_most(
            "end of speech to text, four speakers, P95 ms",
            "<= 1,200 ms",
            number_at(ours, "four speakers", "end_of_speech_to_text_ms", "p95"),
            1200,
            utterances,
            failed=lost,
        ),
        at_most(
            "silent after the overlap qualified, P95 ms",
            "<= 250 ms",
            number_at(ours, "interruptions", "silent_after_ms", "p95"),
            250,
            counted_of(ours, "interruptions", ("interruptions", "interruptions"), spoke_on),
            failed=spoke_on,
        ),
        at_least(
            "questions in two parts that are answered whole",
            ">= 98 %",
            number_at(ours, "two parts", "answered_whole_share"),
            0.98,
            sample_at(ours, "questions", "two parts", "questions"),
        ),
        at_most(
            "words heard of an answer that gave way, P95",
            "<= 2",
            number_at(ours, "two parts", "words_heard", "p95"),
            2,
            sample_at(ours, "answers", "two parts", "words_heard", "count"),
        ),
    )
