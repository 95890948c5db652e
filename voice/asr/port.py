"""The interface of a speech recogniser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from voice.audio import Pcm

# Half a minute of fast speech has 700 characters; an endpoint that sends more than this is not a recogniser.
MAX_TEXT_CHARS: Final = 4_000
# Speech is cut at this length, wherever it is recognised.
LONGEST_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class UsualLanguage:
    """The language that somebody spoke so far, by its code. They may speak another one of `among` now; empty: any."""

    code: str
    among: tuple[str, ...] = ()


# The language of speech: its code, what it usually is, the codes among which it is detected, or None: it may be any.
LanguageHint = str | UsualLanguage | tuple[str, ...] | None


def expected_language(hint: LanguageHint) -> str | None:
    """Return the code of the one language that a hint expects, or None."""
    if isinstance(hint, UsualLanguage):
        return hint.code
    return hint if isinstance(hint, str) else None


@dataclass(frozen=True, slots=True)
class Recognition:
    """The text of one piece of audio, with the figures that the guards need."""

    text: str
    # A code such as `en`; empty if detection was asked for and the recogniser does not report it.
    language: str
    mean_logprob: float
    compression_ratio: float
    no_speech_probability: float
    duration_s: float  # of the audio
    compute_s: float  # wall time in the model
    # The probability of `language`; 1.0 when the caller fixed it.
    language_probability: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class RecognitionRequest:
    """A sound whose text is asked for: mono int16 at 16 kHz, of at most 30 s.

    `glossary`: names and words to expect. `speaker_id`: for fairness, so that one person who talks much does not delay
    the others. `interim`: unfinished speech; only the speaker's latest one is kept, and interims are dropped first
    under load. `careful`: the second hearing of a doubtful text, in the whole window. It waits behind all finished
    speech and is dropped like an interim.
    """

    pcm: Pcm
    language: LanguageHint = None
    glossary: tuple[str, ...] = ()
    speaker_id: int | None = None
    interim: bool = False
    careful: bool = False


class Recogniser(Protocol):
    """Turns speech into text. Any number of tasks may call it; the implementation queues.

    *Cancellation*: a cancelled call leaves the queue. If the model already works on it, the result is dropped.
    """

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        """Return the text of the request's sound.

        Raises `RecogniserOverloadedError` when an interim was dropped (finished speech never is), or for `careful` when
        finished speech waits or the recogniser can do no better; `RecogniserError` when the model failed.
        """

    def confirm(self, speaker_id: int) -> None:
        """Treat the waiting interim of `speaker_id`, if there is one, as finished speech."""
