"""The errors of this package."""

from __future__ import annotations

from typing import Self


class VoiceError(Exception):
    """Base class of all errors in this package. The message is a plain sentence with the remedy.

    `template`: the sentence with `{placeholders}`, a literal, so that it can be translated; `values`: what fills them.
    A value may be another of these errors. `people`: what people read in place of a message for the operator.
    """

    people = ""

    def __init__(self, template: str = "", /, **values: object) -> None:
        super().__init__(template.format(**values) if values else template)
        self.template = template
        self.values = values

    def for_people(self, sentence: str) -> Self:
        """Return this error, of which people read `sentence`: its message names an address or a setting."""
        self.people = sentence
        return self


class VoiceConnectionError(VoiceError):
    """The voice connection could not be made or kept: Discord or the network is at fault.

    `retryable`: whether a retry may succeed without anybody changing anything.
    """

    def __init__(self, template: str, /, *, retryable: bool = True, **values: object) -> None:
        super().__init__(template, **values)
        self.retryable = retryable


class RemovedFromChannelError(VoiceConnectionError):
    """Somebody took the bot out of the voice channel or moved it, or the channel is gone. It does not come back."""

    def __init__(self) -> None:
        super().__init__("Somebody took me out of the voice channel, or deleted the channel.", retryable=False)


class TakenOverError(VoiceConnectionError):
    """Another process of this bot has the server's room now."""

    def __init__(self) -> None:
        super().__init__(
            "Another copy of this bot works on this server now, so I have left the voice channel.", retryable=False
        )


class OpusMissingError(VoiceError):
    """libopus was not found: the operator must install it."""


class OpusError(VoiceError):
    """libopus refused one packet; only that frame is lost."""


class RecogniserError(VoiceError):
    """Speech could not be recognised: the model is missing, unreadable, or its worker died."""


class RecogniserHungError(RecogniserError):
    """The model gave no answer in time. Its thread cannot be ended, and is left behind with the model."""


class RecogniserUnreachableError(RecogniserError):
    """No connection to the recogniser could be made, or it broke before an answer began. It is not merely busy."""


class RecogniserLateError(RecogniserError):
    """A recogniser elsewhere gave no answer within the time limit. It may be busy, or hang."""


class RecogniserOverloadedError(RecogniserError):
    """The recogniser's queue is full, so the request was dropped."""


class SynthesisError(VoiceError):
    """A sentence could not be spoken: the voice is missing, or its service failed.

    `spoken_share`: how much of the sentence (0 to 1) was spoken before.
    """

    def __init__(self, template: str, /, *, spoken_share: float = 0.0, **values: object) -> None:
        super().__init__(template, **values)
        self.spoken_share = spoken_share


class VoiceLoadingError(SynthesisError):
    """The voice is still being loaded; a later sentence may have it."""


class UnreadableTextError(SynthesisError):
    """The voice works, but cannot read the script of a sentence; another voice may."""


class RealtimeError(VoiceError):
    """Speech-to-speech failed: the service, the network or the account is at fault.

    `retryable`: whether a retry may succeed without anybody changing anything.
    """

    def __init__(self, template: str, /, *, retryable: bool = True, **values: object) -> None:
        super().__init__(template, **values)
        self.retryable = retryable


class EnvironmentProxyError(VoiceError):
    """The proxy that the environment names cannot be used."""

    def __init__(self) -> None:
        super().__init__(
            "I cannot use the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: its address must begin "
            "with http:// or https://. Use another proxy, or start Roomtone without these variables."
        )


class EndpointFailureError(VoiceError):
    """Why an endpoint failed, and the remedy: the end of a sentence that begins with its name, without a full stop."""
