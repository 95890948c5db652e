"""The limits of one speech-to-speech session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeLimits:
    """How long to wait for the model, and how many failures to accept. The room uses the defaults; tests vary them."""

    # Seconds to wait for a transcription. After that the local recogniser is used.
    hear_timeout_s: float = 8.0
    # Seconds to wait for the first or the next sound of a reply; anew when a tool is called, and when it has answered.
    reply_timeout_s: float = 10.0
    # Failures in a row after which the room replies without the model.
    failures_before_fallback: int = 3


REALTIME_LIMITS = RealtimeLimits()
