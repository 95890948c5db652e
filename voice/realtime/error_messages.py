"""Plain sentences for the failures of a Realtime endpoint, and whether a retry can help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import openai
from websockets.exceptions import InvalidStatus, InvalidURI, SecurityError, WebSocketException

from voice.errors import RealtimeError

if TYPE_CHECKING:
    from voice.realtime.effects import ConfigurationRefused

# What people read of these sentences for the operator.
_AWAY = "The speech-to-speech model does not answer at the moment."
# Error codes of the protocol whose cause a person must fix.
_LASTING = {
    "insufficient_quota": "The account at {where} has no quota left for speech-to-speech. Look at its billing.",
    "invalid_api_key": "{where} refused the key. Set realtime.api_key to a valid one.",
    "model_not_found": "{where} does not know the model {model}. Set realtime.model to one that it serves.",
}


@dataclass(frozen=True, slots=True)
class ErrorMessages:
    """Makes the errors of one endpoint. `where`: its address, which is in messages for the operator alone."""

    model: str
    where: str

    def translate(self, error: BaseException) -> RealtimeError:
        """Convert an exception of connecting or of a connection to an error whose message names the remedy."""
        match error:
            case RealtimeError():
                return error
            case InvalidStatus():
                return self._refused(error.response.status_code)
            case SecurityError() if isinstance(error.__cause__, InvalidStatus):
                # OpenAI's client follows redirects on the same server alone.
                return self._error(
                    "{where} answered with a redirect to another address, which is not followed. If you trust that "
                    "server, set realtime.base_url to its address.",
                    retryable=False,
                )
            case InvalidURI():
                return self._error(
                    "{where} is not the address of a Realtime endpoint. Check realtime.base_url.",
                    retryable=False,
                )
            case TimeoutError():
                return self._error(
                    "{where} did not answer in time. Check realtime.base_url and that the server is running.",
                )
            case WebSocketException():
                return self._error("The speech-to-speech connection to {where} broke.")
            case openai.OpenAIError():
                return self._error("The client library could not connect. Check realtime.api_key.", retryable=False)
            case OSError():
                return self._error(
                    "Nothing answers at {where}. Check realtime.base_url and that the server is running.",
                )
            case _:
                return self._error(
                    "{where} sent something that is not the Realtime protocol. Check realtime.base_url.",
                )

    def for_code(self, code: str) -> RealtimeError:
        """Return the error for a code that the endpoint sent."""
        lasting = _LASTING.get(code)
        if lasting is not None:
            return self._error(lasting, retryable=False)
        return self._error(
            "The speech-to-speech model {model} at {where} failed ({code}). Try again.",
            code=code,
        )

    def for_configuration(self, refused: ConfigurationRefused) -> RealtimeError:
        """Return the error for a configuration that the endpoint did not accept."""
        known = self.for_code(refused.code)
        if not (refused.mistaken and known.retryable):
            return known
        return self._error(
            "{where} refused the settings of the session ({setting}). Check realtime.voice and asr.languages; it must "
            "have the model gpt-4o-mini-transcribe.",
            setting=refused.setting or refused.code,
            retryable=False,
        )

    def ended(self) -> RealtimeError:
        """Return the error for a connection that the endpoint closed without a reason."""
        return self._error("{where} ended the session.")

    def too_slow(self) -> RealtimeError:
        """Return the error for a connection that takes less than is to be sent."""
        return self._error("{where} takes no more sound; the network is too slow.")

    def _refused(self, status: int) -> RealtimeError:
        if status in {401, 403}:
            return self.for_code("invalid_api_key")
        if status == 404:
            return self.for_code("model_not_found")
        if status == 429:
            return self._error("{where} is over its rate limit or quota. Wait a little, or look at the account.")
        return self._error(
            "{where} refused the connection (status {status}). Try again, or look at its log.",
            status=str(status),
            retryable=status >= 500,
        )

    def _error(self, template: str, *, retryable: bool = True, **values: object) -> RealtimeError:
        error = RealtimeError(template, retryable=retryable, model=self.model, where=self.where, **values)
        return error.for_people(_AWAY)
