"""The local model recognises what the endpoint fails on, and an endpoint that keeps failing is skipped for a while."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.recogniser import FakeRecogniser
from tests.voice.recordings import voiced
from voice.asr.fallback import FallbackRecogniser, RemoteOutcome
from voice.errors import (
    RecogniserError,
    RecogniserLateError,
    RecogniserOverloadedError,
    RecogniserUnreachableError,
)

if TYPE_CHECKING:
    from voice.asr.port import Recognition
    from voice.audio import Pcm

BROKEN = RecogniserError("It is down.")


class BusyRecogniser(FakeRecogniser):
    """Answers nothing but finished speech."""

    async def recognise(self, pcm: Pcm, *, interim: bool = False, careful: bool = False, **others: Any) -> Recognition:
        heard = await super().recognise(pcm, interim=interim, careful=careful, **others)
        if interim or careful:
            raise BROKEN
        return heard


def is_left_alone(recogniser: FallbackRecogniser) -> bool:
    """Return whether the first recogniser is not called at present."""
    return recogniser.outage is not None


def both(*first: str | RecogniserError) -> tuple[FallbackRecogniser, FakeRecogniser, FakeRecogniser, list[float]]:
    """Return a fallback recogniser whose first recogniser gives these results, both its recognisers, and the clock."""
    clock = [0.0]
    one, two = FakeRecogniser(first, otherwise="from afar"), FakeRecogniser(otherwise="from here")
    return FallbackRecogniser(one, two, monotonic=lambda: clock[0]), one, two, clock


async def test_what_the_first_cannot_hear_the_second_does() -> None:
    """If the first recogniser fails, the second gets the same sound, language and glossary. The next utterance goes to
    the first again.
    """
    recogniser, first, second, _ = both(BROKEN)
    pcm = voiced(1)
    heard = await recogniser.recognise(pcm, language="en", glossary=("Ada",), speaker_id=1)
    assert heard.text == "from here"
    assert second.heard[0] is pcm
    assert second.glossaries == [("Ada",)]
    assert (await recogniser.recognise(pcm, language="en")).text == "from afar"
    assert len(first.heard) == 2


async def test_a_trial_that_tells_nothing_is_made_again_at_once() -> None:
    """A guess that is shed, or dropped because its speaker goes on, does not keep the first recogniser out of use."""
    recogniser, _, second, clock = both(BROKEN, BROKEN, RecogniserOverloadedError("Busy."))
    for _ in range(2):
        await recogniser.recognise(voiced(1), language="en")
    clock[0] = 61
    with pytest.raises(RecogniserOverloadedError):
        await recogniser.recognise(voiced(1), interim=True)
    guess = asyncio.create_task(recogniser.recognise(voiced(1), interim=True))
    await asyncio.sleep(0)
    guess.cancel()
    await asyncio.gather(guess, return_exceptions=True)
    assert recogniser.outage is not None
    assert len(second.heard) == 2, "neither guess was passed on"
    assert (await recogniser.recognise(voiced(1), language="en")).text == "from afar"
    assert recogniser.outage is None


async def test_a_right_guess_is_told_to_both() -> None:
    """A confirmation goes to both recognisers, because either may hold the interim request."""
    recogniser, first, second, _ = both()
    recogniser.confirm(7)
    assert (first.confirmed, second.confirmed) == ([7], [7])


async def test_interims_that_fail_do_not_open_the_breaker_while_finished_speech_is_served() -> None:
    """A busy recogniser leaves interims and careful passes unanswered and serves finished speech. It is not broken,
    and what it does not hear the second one does.
    """
    first, second = BusyRecogniser(otherwise="from afar"), FakeRecogniser(otherwise="from here")
    recogniser = FallbackRecogniser(first, second, monotonic=lambda: 0.0)
    for _ in range(5):
        for _ in range(3):
            assert (await recogniser.recognise(voiced(1), careful=True)).text == "from here"
        texts = [(await recogniser.recognise(voiced(1), interim=True)).text for _ in range(3)]
        # Those after a failure are sent as finished speech, to know whether the recogniser works.
        assert texts == ["from afar", "from here", "from afar"]
        assert recogniser.outage is None
    assert [one for one in first.interims if one] == [True] * 5


async def test_interims_alone_find_out_that_the_first_is_away() -> None:
    """After an interim that failed, the next ones are sent as finished speech, which count: where all speech is
    recognised in pauses, a recogniser that is away is left alone after three.
    """
    recogniser, first, second, clock = both(*[BROKEN] * 3)
    for _ in range(5):
        assert (await recogniser.recognise(voiced(1), interim=True)).text == "from here"
    assert first.interims == [True, False, False]
    assert second.interims == [True] * 5
    assert is_left_alone(recogniser)
    clock[0] = 61
    assert (await recogniser.recognise(voiced(1), interim=True)).text == "from afar"
    assert not is_left_alone(recogniser)
    assert (await recogniser.recognise(voiced(1), interim=True)).text == "from afar"
    assert first.interims[3:] == [False, True], "the trial tells for certain, and then nothing is in doubt"


@pytest.mark.parametrize("asked", [{"interim": True}, {"careful": True}])
async def test_one_that_cannot_be_reached_is_left_alone_after_two_requests_of_any_kind(asked: dict[str, Any]) -> None:
    """No load explains a connection that is refused, so each request counts, and /status soon says so."""
    recogniser, first, _, _ = both(*[RecogniserUnreachableError("Nobody answers.")] * 2)
    for _ in range(3):
        assert (await recogniser.recognise(voiced(1), **asked)).text == "from here"
    assert len(first.heard) == 2
    assert is_left_alone(recogniser)


class SlowRecogniser(FakeRecogniser):
    """Takes two seconds for each request. `clock`: the time, in its only element."""

    def __init__(self, answer: str | RecogniserError, clock: list[float]) -> None:
        super().__init__((answer,))
        self._clock = clock

    async def recognise(self, pcm: Pcm, **others: Any) -> Recognition:
        self._clock[0] += 2.0
        return await super().recognise(pcm, **others)


@pytest.mark.parametrize(
    ("answer", "outcome", "second_hears"),
    [
        ("from afar", RemoteOutcome.COMPLETED, False),
        (RecogniserOverloadedError("Busy."), RemoteOutcome.SHED, False),
        (RecogniserUnreachableError("Nobody answers."), RemoteOutcome.UNREACHABLE, True),
        (RecogniserLateError("Too slow."), RemoteOutcome.TIMED_OUT, True),
        (BROKEN, RemoteOutcome.FAILED, True),
    ],
)
async def test_what_became_of_a_request_is_told(
    answer: str | RecogniserError, outcome: RemoteOutcome, second_hears: bool
) -> None:
    """Once for each request, with the seconds that the first recogniser took."""
    clock, told, second = [0.0], list[tuple[RemoteOutcome, float]](), FakeRecogniser()
    recogniser = FallbackRecogniser(
        SlowRecogniser(answer, clock), second, monotonic=lambda: clock[0], observe=lambda *each: told.append(each)
    )
    with contextlib.suppress(RecogniserOverloadedError):
        await recogniser.recognise(voiced(1), interim=True)
    assert told == [(outcome, 2.0)]
    assert bool(second.heard) == second_hears
