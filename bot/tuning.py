"""What rehearsals, benchmarks and endurance tests change about the bot, and no operator.

No file and no variable has it.

An override of a rehearsal whose name begins with `tuning.` is one of these (`split_overrides`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from compaction.settings import SummariserKind

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "tuning."


class Tuning(BaseModel, extra="forbid", frozen=True):
    """How the bot is in a rehearsal where it would otherwise last too long, cost too much, or differ each time.

    The defaults are what every other bot does.
    """

    # Seconds to wait for the first piece of an answer; then the next fallback model is asked. After twice this time a
    # reply that has not begun to sound is given up: a second model has had time, and the conversation has moved on.
    first_token_s: float = 10.0
    # Seconds after the bot's answer to somebody in which they can go on without its name: people take that long to
    # think of the next question.
    engagement_s: float = 35.0
    # Minutes in which there is at most one remark in a silence.
    quiet_thought_every_minutes: float = 30.0
    # Seconds alone in the channel after which the bot leaves, where the server has chosen none: long enough for a
    # break, short enough not to haunt a channel.
    leave_when_empty_s: float = 300.0
    # Least seconds between two remarks about a screen that nobody asked for.
    screen_remark_every_s: float = 15.0
    # How many quotes of what was said earlier a prompt gets unasked. More push out turns; rehearsals have none where
    # the model shall search.
    quotes: int = 4
    # How long a reply waits for quotes; then it goes on with what was found by then.
    quote_wait_s: float = 0.1
    # How many embeddings the search holds in memory, half a kilobyte each of the local model. Of more, only the newest
    # are found by their meaning, and all by their words. An hour of a lively room has 4,000.
    vectors_in_memory: int = 200_000
    # What writes the summary.
    summariser: SummariserKind = SummariserKind.AUTO
    # How differently the embedded voice speaks the same words each time; 0: always the same.
    voice_variety: float = 1.0
    # Seconds until a sentence's first sound must arrive from a voice at an endpoint.
    voice_timeout_s: float = 8.0
    # Whether the embedded voice says what the endpoint fails to say. Else it is written in the text channel.
    voice_falls_back: bool = True
    # The PEM file with the certificate of a Discord of the rehearsal's own; empty: it is the real one.
    discord_certificate: str = ""
    # Seconds after which a speech-to-speech session is renewed: a minute less than OpenAI allows.
    realtime_session_s: float = 3_540.0
    # Seconds after which a speech-to-speech model that was given up is tried again. The time doubles each time that it
    # fails again before its first reply, up to half an hour.
    realtime_retry_after_s: float = 60.0


UNTUNED = Tuning()


def split_overrides(overrides: Mapping[str, object]) -> tuple[Tuning, dict[str, object]]:
    """Return the tuning in overrides by dotted name, and the settings. Raises `pydantic.ValidationError`."""
    tuning = {name.removeprefix(_PREFIX): value for name, value in overrides.items() if name.startswith(_PREFIX)}
    return Tuning.model_validate(tuning), {
        name: value for name, value in overrides.items() if not name.startswith(_PREFIX)
    }
