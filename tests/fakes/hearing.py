"""Speech detection and recognition without models. Loud sound counts as speech, and the test chooses the recognised
text.
"""

from __future__ import annotations

import asyncio

import numpy as np

from voice.asr.port import LanguageHint, Recognition, RecognitionRequest, UsualLanguage, expected_language
from voice.audio import LISTEN_RATE_HZ, Pcm, duration_s
from voice.transport.audio_events import SpeechFrames, TalkspurtEnded

LOUD = 8000


class CannedRecogniser:
    """Implements `voice.asr.port.Recogniser`. Returns the texts in order and raises those that are exceptions.
    `otherwise`: the text of whatever comes after them; without it each is another one.
    """

    def __init__(self, *texts: str | Exception, otherwise: str = "") -> None:
        self.texts = list(texts)
        self._otherwise = otherwise
        self.asked: list[tuple[int | None, LanguageHint, tuple[str, ...]]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.mean_logprob = -0.2
        # Those of the next texts; afterwards `mean_logprob` applies.
        self.mean_logprobs: list[float] = []
        # What people speak; others speak English. Heard in another language it makes no sense.
        self.languages: dict[int | None, str] = {}
        # Whose language is not detected: what they say is heard in `fallback`, as the local model does.
        self.unsure: set[int | None] = set()
        self.fallback = "en"
        # Whether everything is heard in the language that is expected, as an endpoint does.
        self.obeys = True
        self.confirmed: list[int] = []
        self.interims: list[bool] = []
        self.sounds: list[Pcm] = []
        self.careful: list[bool] = []
        # Whether a second hearing of a sound gives the text of the first, instead of the next text.
        self.repeats = False
        self._last = ""

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        """Return the next text as soon as `gate` is set."""
        self.asked.append((request.speaker_id, request.language, request.glossary))
        self.interims.append(request.interim)
        self.sounds.append(request.pcm)
        self.careful.append(request.careful)
        await self.gate.wait()
        text = self._next_text(careful=request.careful)
        if isinstance(text, Exception):
            raise text
        self._last = text
        logprob = self.mean_logprobs.pop(0) if self.mean_logprobs else self.mean_logprob
        language, speaker_id, length_s = request.language, request.speaker_id, duration_s(request.pcm)
        known = expected_language(language)
        speaks = self.languages.get(speaker_id, known or "en")
        if isinstance(language, UsualLanguage) and not self.obeys:
            known = speaks
        if known is None and speaker_id in self.unsure:
            return Recognition(text, self.fallback, -0.25, 1.0, 0.0, length_s, 0.01, 0.1)
        if known not in (None, speaks):
            logprob = -1.2
        return Recognition(text, known or speaks, logprob, 1.0, 0.0, length_s, 0.01, 0.99)

    def _next_text(self, *, careful: bool) -> str | Exception:
        if careful and self.repeats:
            return self._last
        otherwise = self._otherwise or f"And so on, for the {len(self.asked)}th time."
        return self.texts.pop(0) if self.texts else otherwise

    def confirm(self, speaker_id: int) -> None:
        """Record that the waiting interim of this speaker counts as finished speech."""
        self.confirmed.append(speaker_id)


def speech(
    user_id: int, *, at: float, seconds: float = 2.0, quiet_s: float = 0.0
) -> list[SpeechFrames | TalkspurtEnded]:
    """Return the events of loud sound from one user, beginning at `at`, and of the end of the talkspurt. `quiet_s`: of
    silence at its end, as where a person's pause is sent.
    """
    pcm = np.full(int(seconds * LISTEN_RATE_HZ), LOUD, dtype=np.int16)
    pcm[len(pcm) - int(quiet_s * LISTEN_RATE_HZ) :] = 0
    return [SpeechFrames(user_id, user_id, at, pcm), TalkspurtEnded(user_id, user_id, at + seconds)]
