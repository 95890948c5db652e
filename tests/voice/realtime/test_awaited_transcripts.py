"""Each input gets its own transcript, an error, or none in time."""

from __future__ import annotations

import asyncio

import pytest

from voice.errors import RealtimeError
from voice.realtime.awaited_transcripts import AwaitedTranscripts
from voice.realtime.effects import InputTranscribed


@pytest.mark.asyncio
async def test_each_input_gets_its_own_transcript() -> None:
    """Transcripts may come in another order than the inputs, and before anybody waits for them."""
    inputs = AwaitedTranscripts()
    inputs.add(1)
    inputs.add(2)
    second, first = InputTranscribed(2, "b", "Two."), InputTranscribed(1, "a", "One.")
    inputs.resolve(second)
    inputs.resolve(first)
    inputs.resolve(InputTranscribed(3, "c", "Nobody asked."))
    assert await inputs.wait(1, within_s=5.0) == first
    assert await inputs.wait(2, within_s=5.0) == second


@pytest.mark.asyncio
async def test_a_session_that_is_given_up_ends_all_waiting() -> None:
    """Everybody who waits gets the error; what comes after that is ignored."""
    inputs = AwaitedTranscripts()
    inputs.add(1)
    inputs.add(2)
    inputs.resolve(InputTranscribed(2, "b", "Two."))
    inputs.fail(RealtimeError("It is gone."))
    inputs.resolve(InputTranscribed(1, "a", "Late."))
    with pytest.raises(RealtimeError, match="It is gone"):
        await inputs.wait(1, within_s=5.0)
    assert (await inputs.wait(2, within_s=5.0)).text == "Two."


@pytest.mark.asyncio
async def test_a_late_transcript_is_nobodys() -> None:
    """After the time is over the input is not expected any more."""
    inputs = AwaitedTranscripts()
    inputs.add(1)
    with pytest.raises(TimeoutError):
        await inputs.wait(1, within_s=0.0)
    inputs.resolve(InputTranscribed(1, "a", "Late."))
    await asyncio.sleep(0)
