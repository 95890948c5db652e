"""The runner plays each step at its time, limits every wait, and always returns a report."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.events import UtteranceTranscribed
from rehearsal.report.report import RehearsalReport
from rehearsal.roomtone.evenings.virtual_time import run_virtually
from rehearsal.roomtone.playing import rehearse
from rehearsal.runner.local_servers import LocalServers
from rehearsal.runner.record import BotCrashed
from rehearsal.script.scenario import Scenario, ServerStep
from tests.rehearsal.simulated import SimulatedBot, SimulatedEnvironment, SimulatedRecogniser, say, scenario


def played(
    made: Scenario, *, react: Any = None, prepare: Any = None, recogniser: Any = None, servers: Any = None
) -> tuple[RehearsalReport, SimulatedEnvironment]:
    """Play the scenario `made` in virtual time. `prepare(bot)` runs before the start."""
    environment = SimulatedEnvironment()
    bot = SimulatedBot(made, environment, **({"react": react} if react else {}))
    if prepare:
        prepare(bot)
    work = rehearse(
        made,
        bot=bot,
        recogniser=recogniser or SimulatedRecogniser(),
        open_environment=environment.opener(),
        servers=servers,
    )
    return run_virtually(work), environment


def moments(environment: SimulatedEnvironment, text: str) -> list[float]:
    """Return the times at which the runner did this, in seconds since the start."""
    return [at for at, what in environment.log if what == text]


def failed(report: RehearsalReport) -> dict[str, str]:
    """Return the expectations that were not met, with their details."""
    return {one.name: one.detail for one in report.expectations if not one.passed}


ALL_WELL = (
    {"kind": "every_utterance_heard_once"},
    {"kind": "attributed"},
    {"kind": "max_wer", "value": 0.0},
    {"kind": "dave_failures"},
    {"kind": "notice_posted", "contains": "listening"},
    {"kind": "nothing_raised", "warnings": True},
    {"kind": "turns_unbroken"},
    {"kind": "timeline_complete"},
)


def test_a_step_follows_the_one_before_it() -> None:
    """A step starts `gap_s` after the end of the step before it, or 0.6 s after if no gap is given."""
    made = scenario(say("mira", "one", seconds=2.0), say("jonas", "two"), say("mira", "three", seconds=1.0, gap_s=1.5))
    _, environment = played(made)
    assert moments(environment, "11 speaks") == [0.6, 0.6 + 2.0 + 0.6 + 2.0 + 1.5]
    assert moments(environment, "12 speaks") == [0.6 + 2.0 + 0.6]


def test_overlap_counts_back_from_the_promised_end() -> None:
    """`overlap_s` counts back from the expected end of the step before, so Jonas starts while Mira still speaks."""
    made = scenario(say("mira", "a long story", seconds=4.0), say("jonas", "wait", overlap_s=1.0))
    _, environment = played(made)
    assert moments(environment, "12 speaks") == [pytest.approx(0.6 + 4.0 - 1.0)]


def test_waiting_in_vain_is_a_broken_promise_and_the_run_goes_on() -> None:
    """A wait for a reply that never comes fails after its timeout, and the run continues."""
    made = scenario(say("mira", "hello"), {"wait_for": "reply", "timeout_s": 4.0}, say("jonas", "nobody home"))
    report, environment = played(made)
    assert failed(report) == {"wait": "step 3: the bot did not speak within 4 s"}
    assert moments(environment, "12 speaks") == [pytest.approx(0.6 + 2.0 + 4.0 + 0.6)]


def test_a_crash_ends_the_run_with_a_sentence() -> None:
    """When the bot crashes, the run ends and the report gives the reason."""

    def react(bot: SimulatedBot, heard: UtteranceTranscribed) -> None:
        bot.report(BotCrashed("its database is gone"))

    made = scenario(say("mira", "one"), say("mira", "two", gap_s=5.0, seconds=1.0))
    report, environment = played(made, react=react)
    assert not report.passed
    assert report.ended_by == "The bot ended in the middle of the run: its database is gone"
    assert moments(environment, "11 speaks") == [0.6]
    assert len(report.utterances) == 1


def test_the_bot_starts_with_the_history() -> None:
    """The stored turns have the ids and the names of those who said them."""
    bots: list[SimulatedBot] = []
    old = {"speaker": "Jonas", "text": "an old thing", "at": -60}
    report, _ = played(scenario(say("mira", "one"), history=(old,), expect=ALL_WELL[:3]), prepare=bots.append)
    assert report.passed, failed(report)
    [setup] = bots[0].setups
    assert [(part.speaker_id, part.speaker, part.text) for turn in setup.history for part in turn.parts] == [
        ("12", "Jonas", "an old thing")
    ]


def test_what_nobody_awaited_is_a_problem() -> None:
    """An exception that nothing awaits makes `nothing_raised` fail."""

    def react(bot: SimulatedBot, heard: UtteranceTranscribed) -> None:
        def explode() -> None:
            raise ValueError("in a callback")

        asyncio.get_running_loop().call_soon(explode)

    report, _ = played(scenario(say("mira", "one"), expect=({"kind": "nothing_raised"},)), react=react)
    assert failed(report) == {"nothing_raised": "unhandled_exception: ValueError: in a callback"}


_moments = st.one_of(
    st.just({}),
    st.builds(lambda s: {"gap_s": s}, st.floats(0, 5)),
    st.builds(lambda s: {"overlap_s": s}, st.floats(0.1, 5)),
    st.builds(lambda after: {"after": after}, st.sampled_from(["heard", "s0", "s1"])),
)


@given(
    st.lists(st.tuples(st.sampled_from(["mira", "jonas"]), st.floats(0.5, 6.0), _moments), min_size=1, max_size=7),
)
@settings(deadline=None, max_examples=40)
def test_whatever_the_moments_everything_is_said_once_and_nobody_talks_over_themselves(
    lines: list[tuple[str, float, dict[str, Any]]],
) -> None:
    """With any mixture of gaps, overlaps and followed steps, the run ends and every line is heard once."""
    steps = []
    for number, (who, seconds, when) in enumerate(lines):
        # A step can only follow an id of an earlier step.
        possible = {} if when.get("after", "heard") not in {"heard", *(f"s{n}" for n in range(number))} else when
        steps.append(
            say(who, f"sentence {number}", seconds=round(seconds, 2) + number / 1000, id=f"s{number}", **possible)
        )
    report, _ = played(scenario(*steps, expect=ALL_WELL[:2]))
    assert report.passed, failed(report)
    assert len(report.utterances) == len(lines)
    spans = sorted((row.speaker, row.started_s, steps[int(row.step[1:])]) for row in report.utterances)
    for (speaker, began, step), (other, later, _) in itertools.pairwise(spans):
        if speaker == other:
            assert later >= began + float(step["audio"].stem.split("-")[1]) - 0.02


def test_a_server_behaves_differently_from_a_step_on() -> None:
    """The runner passes the step on and records its time. Without such a server, the run ends with an error."""

    class Servers(LocalServers):
        def __init__(self) -> None:
            super().__init__()
            self.told: list[ServerStep] = []

        async def set_behaviour(self, step: ServerStep) -> None:
            self.told.append(step)

    steps = (
        {"server": "model", "conduct": "stall", "id": "down", "gap_s": 1.0},
        say("mira", "Roomtone, hello", id="ask", answered=True),
        {"wait_for": "reply"},
    )
    silent = {"kind": "silent", "since": "down", "until": "ask", "within_s": 0.1}
    servers = Servers()
    report, _ = played(scenario(*steps, expect=(silent,)), servers=servers)
    assert report.passed, failed(report)
    assert [(step.server, step.conduct) for step in servers.told] == [("model", "stall")]
    assert [one.name for one in report.expectations[1:]] == ["answered ask", "silent down"]
    alone, _ = played(scenario(*steps))
    assert "no model server" in alone.ended_by


def test_it_does_not_end_while_the_bot_speaks_or_owes_an_answer() -> None:
    """The run does not end while the bot is speaking or still owes an answer."""

    def react(bot: SimulatedBot, heard: UtteranceTranscribed) -> None:
        async def answer_late() -> None:
            await asyncio.sleep(6.0)
            bot.answer(heard, "It was Ithaca.")

        bot.later(answer_late(), "late")

    made = scenario(say("mira", "Roomtone, hello", answered=True), settle_s=30.0)
    late, _ = played(made, react=react)
    assert [turn.text for turn in late.bot_turns] == ["It was Ithaca."]

    def voice_spans(bot: SimulatedBot, heard: UtteranceTranscribed) -> None:
        now = asyncio.get_running_loop().time()
        bot.environment.voice_span = (now, now + 9.0)

    begun = played(scenario(say("mira", "hello"), settle_s=30.0))[0].duration_s
    assert 9.0 < played(scenario(say("mira", "hello"), settle_s=30.0), react=voice_spans)[0].duration_s - begun < 12.0


def test_somebody_speaks_when_the_bots_voice_is_heard() -> None:
    """A step with `after = "voice"` starts when the bot's voice is heard. If it is never heard, the wait fails."""

    def voice_spans(bot: SimulatedBot, heard: UtteranceTranscribed) -> None:
        now = asyncio.get_running_loop().time()
        bot.environment.voice_span = bot.environment.voice_span or (now + 7.0, now + 20.0)

    steps = (say("mira", "Roomtone, hello", seconds=2.0), say("jonas", "wait", after="voice", gap_s=1.5))
    report, environment = played(scenario(*steps), react=voice_spans)
    assert report.passed, failed(report)
    (asked,), (broke_in,) = moments(environment, "11 speaks"), moments(environment, "12 speaks")
    assert broke_in - asked == pytest.approx(2.0 + 0.5 + 7.0 + 1.5, abs=0.1)
    silent, _ = played(scenario(*steps), react=lambda bot, heard: None)
    assert failed(silent) == {"wait": "step 3: nobody heard the bot's voice within 30 s"}
