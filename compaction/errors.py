"""What can go wrong in the room's memory, named by who must act."""

from __future__ import annotations


class CompactionError(Exception):
    """Base of every error this package raises."""


class StoreError(CompactionError):
    """The store failed: the operator must look at the disk or the database. Nothing was half-written."""


class SessionEndedError(CompactionError):
    """Something was asked of a session that has ended: the caller must open a new one."""


class CompletionError(CompactionError):
    """The text model failed. `retryable` tells a passing trouble from a wrong key or model name."""

    def __init__(self, message: str, *, retryable: bool, timeout: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.timeout = timeout


class EmbeddingError(CompactionError):
    """The embedder failed; search goes on by full text. `retryable` tells a passing trouble from a wrong key."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class SummaryRefusedError(CompactionError):
    """A summariser's answer cannot stand for the turns (blank, cut off, a refusal, a copy, an answer)."""


class ContextOverflowError(CompactionError):
    """What must be sent does not fit the model, even after trimming. The person must narrow the request."""

    def __init__(self, *, current: int, maximum: int) -> None:
        super().__init__(
            f"This does not fit the model: {current} tokens are needed and {maximum} are allowed. "
            "Ask for less at once, shorten what is attached, or set a larger budget.max_context_tokens."
        )
        self.current = current
        self.maximum = maximum
