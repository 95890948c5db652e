"""The errors of this package. Each docstring says what happened, and most say who must act."""

from __future__ import annotations


class CompactionError(Exception):
    """Base class of all errors that this package raises.

    `template`: the message with `{placeholders}`, a literal, so that it can be translated; `values`: what fills them.
    `people`: what people read in place of a message for the operator.
    """

    people = ""

    def __init__(self, template: str = "", /, **values: object) -> None:
        super().__init__(template.format(**values) if values else template)
        self.template = template
        self.values = values


class StoreError(CompactionError):
    """The store failed, and no write is half done. The operator must check the disk or the database."""


class StaleOwnerError(CompactionError):
    """Another process has taken the session over: the store refuses this one's writes for good. The caller must stop.

    It is no `StoreError`, after which callers go on and write later.
    """


class SessionEndedError(CompactionError):
    """The session has ended. The caller must open a new one."""


class CompletionError(CompactionError):
    """The text model failed. `retryable`: trying again may help. It does not help with a wrong key or model name.
    `detail`: what a program's own function says about it. It may hold what people said, so it is never logged.
    """

    def __init__(self, message: str, *, retryable: bool, timeout: bool = False, detail: str = "") -> None:
        super().__init__(message)
        self.retryable = retryable
        self.timeout = timeout
        self.detail = detail


class RequestTooLongError(CompletionError):
    """The request does not fit the text model, and is never cut."""


class EmbeddingError(CompactionError):
    """The embedder failed, so search uses full text alone. `retryable`: trying again may help. It does not with a wrong
    key.
    """

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class SummaryRefusedError(CompactionError):
    """A model's answer is not used. It is no summary: blank, cut off before a whole sentence, a refusal, a copy of the
    turns, or a reply to them. Or somebody's words in it were withheld, or given back, while it was made.
    """


class ContextOverflowError(CompactionError):
    """The prompt does not fit the model even after trimming. The person who asked must ask for less."""

    people = "That is too much for me at a time. Ask me for less."

    def __init__(self, *, current: int, maximum: int) -> None:
        super().__init__(
            "This is too long for the model. It has {current} tokens (pieces of words), but only {maximum} are "
            "allowed. Ask for less, send shorter files, or allow more with the setting budget.max_context_tokens. In "
            "your own program, this is max_tokens of ConversationMemory.",
            current=current,
            maximum=maximum,
        )
        self.current = current
        self.maximum = maximum
