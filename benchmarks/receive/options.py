"""The options of the receive benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.receive.scene import Scene


@dataclass(frozen=True, slots=True)
class ReceiveBenchOptions:
    """The options of one run. The defaults are a full run.

    `speakers`: how many speak at once, one number after the other. `bot_speakers`: the same for the whole bot.
    `in_step`: how many speak with their packets at the same moments, for the bare link; 0: this is not measured.
    `seconds`: for how long it is measured while they speak, after `warm_up_s`, in which their streams begin.
    `bot_seconds`: the same for the whole bot, after `bot_warm_up_s`, in which the first of what they say is recognised.
    `only`: the parts to measure; empty means all.
    """

    speakers: tuple[int, ...] = (10, 50, 100, 150)
    bot_speakers: tuple[int, ...] = (50, 100)
    in_step: int = 200
    seconds: float = 6.0
    warm_up_s: float = 1.0
    bot_seconds: float = 30.0
    bot_warm_up_s: float = 10.0
    only: tuple[str, ...] = ()

    @classmethod
    def quick(cls, **chosen: object) -> ReceiveBenchOptions:
        """Return the options for a short run, which only checks that everything works."""
        few = {"speakers": (3,), "bot_speakers": (3,), "in_step": 3}
        short = {"seconds": 1.0, "warm_up_s": 0.2, "bot_seconds": 2.0, "bot_warm_up_s": 1.0}
        return cls(**{**few, **short, **chosen})  # type: ignore[arg-type]

    def wants(self, part: str) -> bool:
        """Return whether this part has to be measured."""
        return not self.only or part in self.only

    @property
    def people(self) -> int:
        """How many people are in the channel."""
        parts = {"link": self.link_scenes, "bot": self.bot_scenes}
        return max(
            (scene.speakers for part, scenes in parts.items() if self.wants(part) for scene in scenes), default=0
        )

    @property
    def link_scenes(self) -> tuple[Scene, ...]:
        """What the bare link is measured with: people who speak all the time, at last with their packets in step."""
        speaking = tuple(Scene(number, self.seconds, self.warm_up_s) for number in self.speakers)
        in_step = (Scene(self.in_step, self.seconds, self.warm_up_s, in_step=True),) if self.in_step else ()
        return (*speaking, *in_step)

    @property
    def bot_scenes(self) -> tuple[Scene, ...]:
        """What the whole bot is measured with: people who pause, so that something is recognised all the time."""
        return tuple(Scene(number, self.bot_seconds, self.bot_warm_up_s, pauses=True) for number in self.bot_speakers)
