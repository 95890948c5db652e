"""A simulated environment and a simulated bot. They implement the runner's ports without sound.

A person speaks as long as the name of the clip says (`mira-2.5.ogg` takes 2.5 s). The bot hears perfectly after a delay
of 0.5 s, and reacts to each utterance as the test says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bot import events
from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind, PayloadPart
from rehearsal.runner.ports import BotSetup, DiscordAddresses
from rehearsal.runner.record import Observation, ObservationCallback
from rehearsal.script.scenario import PersonSpec, PersonStep, SayStep, Scenario

TEXT_DELAY_S = 0.5
REPLY_DELAY_S = 0.8
REPLY_S = 2.0
# People hear the bot so much after it has begun and after it has ended.
HEARD_AFTER_S, HEARD_LONGER_S = 0.1, 1.0

MIRA = PersonSpec(key="mira", name="Mira", id=11)
JONAS = PersonSpec(key="jonas", name="Jonas", id=12)
ADA = PersonSpec(key="ada", name="Ada", id=13, present=False)


def scenario(*steps: Any, **more: Any) -> Scenario:
    """Return a scenario with Mira, Jonas and Ada that begins with Mira's /join. Ada is not present at the start."""
    made: dict[str, Any] = {"title": "A test", "people": (MIRA, JONAS, ADA), "settle_s": 10.0, **more}
    return Scenario.model_validate({**made, "steps": ({"who": "mira", "command": "join"}, *steps)})


def say(who: str, text: str, *, seconds: float = 2.0, **more: Any) -> dict[str, Any]:
    """Return a spoken step."""
    return {"who": who, "say": text, "audio": Path(f"{who}-{seconds}.ogg"), **more}


class SimulatedEnvironment:
    """An environment without sound. `log` lists what the runner did, with the virtual time since the first entry."""

    def __init__(self) -> None:
        self.log: list[tuple[float, str]] = []
        self.bot: SimulatedBot | None = None
        self.posted: list[str] = []
        # The time during which the bot's voice is heard, apart from the replies that the bot reports.
        self.voice_span: tuple[float, float] | None = None
        # When the simulated bot began and ended each reply.
        self.replies: list[tuple[float, float]] = []
        self._zero: float | None = None

    def _note(self, text: str) -> None:
        now = asyncio.get_running_loop().time()
        self._zero = now if self._zero is None else self._zero
        self.log.append((round(now - self._zero, 3), text))

    @property
    def addresses(self) -> DiscordAddresses:
        return DiscordAddresses("http://127.0.0.1:1/api", Path("cert.pem"), "token", 1, 2)

    @property
    def messages(self) -> tuple[str, ...]:
        return tuple(self.posted)

    async def enter(self, user_id: int) -> None:
        self._note(f"enter {user_id}")

    async def leave(self, user_id: int) -> None:
        self._note(f"leave {user_id}")

    async def meet(self, user_id: int) -> None:
        self._note(f"meet {user_id}")

    async def act(self, user_id: int, step: PersonStep) -> str:
        self._note(f"{user_id} acts")
        if getattr(step, "command", "") == "join" and self.bot is not None:
            self.bot.enter()
            self.posted.append("I am listening to this channel.")
        return ""

    def speech_s(self, step: SayStep) -> float:
        assert step.audio is not None
        return float(step.audio.stem.split("-")[1])

    async def say(self, user_id: int, step: SayStep) -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._note(f"{user_id} speaks")
        await asyncio.sleep(self.speech_s(step))
        return began, loop.time()

    def voiced(self, listener_id: int, since: float, until: float) -> tuple[float, float] | None:
        if until >= asyncio.get_running_loop().time():
            # The runner asks about the present: is the bot speaking now?
            speaks = self.voice_span is not None and self.voice_span[0] <= until and since <= self.voice_span[1]
            return (since, until) if speaks else None
        if self.bot is None:
            return since + 0.2, until
        heard = [
            (first, last)
            for began, ended in self.replies
            if (first := max(since, began + HEARD_AFTER_S)) < (last := min(until, ended + HEARD_LONGER_S))
        ]
        return (heard[0][0], heard[-1][1]) if heard else None

    def heard(self, listener_id: int, since: float, until: float) -> NDArray[np.int16]:
        return np.array([int(since * 10) % 30000], np.int16)

    def opener(self) -> Callable[[Scenario], AbstractAsyncContextManager[Any]]:
        """Return the function that `rehearse` calls to open the environment."""

        @asynccontextmanager
        async def opened(_: Scenario) -> AsyncIterator[Any]:
            yield self

        return opened


# The bot's reaction to an utterance. It may report events at once.
Reaction: TypeAlias = Callable[["SimulatedBot", events.UtteranceTranscribed], None]


def answers_its_name(bot: SimulatedBot, heard: events.UtteranceTranscribed) -> None:
    """Answer every utterance that contains the bot's name."""
    if "roomtone" in heard.text.lower():
        bot.answer(heard, "It was Ithaca, said Mira.")


class SimulatedBot:
    """A bot that hears what the scenario's people say and reacts with `react`."""

    def __init__(
        self, played: Scenario, environment: SimulatedEnvironment, *, react: Reaction = answers_its_name
    ) -> None:
        self.played = played
        self.environment = environment
        self.react = react
        self.setups: list[BotSetup] = []
        self.next_seq = len(played.history)
        self._report: ObservationCallback = lambda _: None
        self._tasks: set[asyncio.Task[None]] = set()
        environment.bot = self
        self._wrapped_say = environment.say
        environment.say = self._overhear  # type: ignore[method-assign]

    async def start(self, setup: BotSetup, report: ObservationCallback) -> None:
        self.setups.append(setup)
        self._report = report

    async def stop(self) -> None:
        self.report(
            events.ConnectionChanged("left", {"received": 100, "lost": 0, "concealed": 0, "dave_failures": 0}, 0.0)
        )

    async def kill(self) -> None:
        pass

    def report(self, observation: Observation) -> None:
        """Report an observation to the runner. Of a reply, people hear the sound."""
        if isinstance(observation, events.ReplySpoken):
            self.environment.replies.append((observation.first_audio_at, observation.ended_at))
        self._report(observation)

    def enter(self) -> None:
        """Report that the bot has joined the channel."""
        self.report(events.RoomOpened("session", 1, 2, False, asyncio.get_running_loop().time()))

    def answer(
        self, heard: events.UtteranceTranscribed, text: str, *, content: str = "Mira would go to Ithaca."
    ) -> None:
        """Report a prompt and, after a delay, a reply."""
        self.later(self._speak(heard, text, content), "answer")

    async def _speak(self, heard: events.UtteranceTranscribed, text: str, content: str) -> None:
        loop = asyncio.get_running_loop()
        asked = self.next_seq - 1
        parts = (
            PayloadPart("system", PartKind.SUMMARY, Seq(0), Seq(9), 10, content),
            PayloadPart("user", PartKind.CURRENT, Seq(asked), Seq(asked), 5, heard.text),
        )
        self.report(events.ContextBuilt(parts, asked, loop.time()))
        await asyncio.sleep(REPLY_DELAY_S)
        began = loop.time()
        await asyncio.sleep(REPLY_S)
        self.report(events.ReplySpoken(text, asked, heard.utterance_id, began, loop.time(), False, None, None))
        self._record(TurnKind.ASSISTANT, "assistant", text)

    async def _overhear(self, user_id: int, step: SayStep) -> tuple[float, float]:
        began, ended = await self._wrapped_say(user_id, step)
        self.later(self._hear(user_id, step.say, began, ended), "hear")
        return began, ended

    async def _hear(self, user_id: int, text: str, began: float, ended: float) -> None:
        await asyncio.sleep(TEXT_DELAY_S)
        now = asyncio.get_running_loop().time()
        name = f"u{len(self._tasks)}-{began:.1f}-{user_id}"
        heard = events.UtteranceTranscribed(name, user_id, text, began, ended, now)
        self.report(heard)
        self._record(TurnKind.SPEECH, str(user_id), text)
        self.react(self, heard)

    def _record(self, kind: TurnKind, speaker_id: str, text: str) -> None:
        turn = Turn(Seq(self.next_seq), kind, 0.0, 0.0, (TurnPart(speaker_id, "", text),))
        self.report(events.TurnRecorded(turn, 0.0))
        self.next_seq += 1

    def later(self, work: Any, name: str) -> None:
        """Run a coroutine in the background."""
        self._tasks.add(asyncio.get_running_loop().create_task(work, name=name))


class SimulatedRecogniser:
    """A recogniser that returns the same text for every sound."""

    def __init__(self, text: str = "it was Ithaca said Mira") -> None:
        self.text = text

    async def transcribe(self, pcm: NDArray[np.int16]) -> str:
        return self.text if pcm.size else ""
