"""Track each person's language: detect it once, keep it, and confirm it now and then.

Detection on one short word is a guess, a wrong guess ruins the whole utterance, and people rarely change their
language. So a language is settled after one sure detection or two equal ones, and changed only after two contradicting
confirmations in a row. A fallback language does not count as detected.
"""

from __future__ import annotations

from dataclasses import dataclass

# Among 89 English utterances, none was taken for another language with a higher probability.
SURE_PROBABILITY = 0.8
# With less sound, even a sure detection may be chance.
SURE_AFTER_S = 1.5
# A detected language has at least half of the probability. A fallback had 0.0-0.2 when another language was spoken.
FOUND_PROBABILITY = 0.5
AGREEING_DETECTIONS = 2
# A change of language is noticed after at most twice this many utterances; each confirmation costs a decoder step.
CONFIRM_EVERY = 20


@dataclass(slots=True)
class _Person:
    settled: str | None = None
    candidate: str | None = None
    agreeing: int = 0
    since_confirmed: int = 0


class SpeakerLanguages:
    """Remembers the languages of a room's speakers. Owned by the room; not thread-safe."""

    def __init__(self, fixed: str | None = None) -> None:
        """`fixed`: everybody's language as set by the operator. None: detect each person's language."""
        self._fixed = fixed
        self._people: dict[int, _Person] = {}

    def expected(self, user_id: int, *, speech_s: float) -> str | None:
        """Return the language for the person's next utterance of `speech_s` seconds, or None to detect it."""
        if self._fixed is not None:
            return self._fixed
        person = self._people.get(user_id)
        if person is None or person.settled is None:
            return None
        # Detection on a short word is a guess, so the confirmation waits for a longer utterance.
        is_due = person.since_confirmed >= CONFIRM_EVERY and speech_s >= SURE_AFTER_S
        return None if is_due else person.settled

    def observed(self, user_id: int, language: str, *, probability: float, speech_s: float, detected: bool) -> None:
        """Record the language of an utterance. `detected`: by the model; otherwise it was the expected one.

        An empty `language` (the recogniser does not report it) changes nothing.
        """
        if not language:
            return
        person = self._people.setdefault(user_id, _Person())
        if not detected:
            person.since_confirmed += 1
            return
        if probability < FOUND_PROBABILITY:
            # This detection neither confirms nor contradicts the settled language.
            if person.candidate is None:
                person.since_confirmed = 0
            return
        if language == person.settled:
            person.candidate, person.agreeing, person.since_confirmed = None, 0, 0
            return
        person.agreeing = person.agreeing + 1 if language == person.candidate else 1
        person.candidate = language
        is_sure = probability >= SURE_PROBABILITY and speech_s >= SURE_AFTER_S
        if person.agreeing >= AGREEING_DETECTIONS or (is_sure and person.settled is None):
            person.settled = language
            person.candidate, person.agreeing, person.since_confirmed = None, 0, 0

    def forget(self, user_id: int) -> None:
        """Remove the entry of a person who left."""
        self._people.pop(user_id, None)
