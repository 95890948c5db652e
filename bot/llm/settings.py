"""Settings of the language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, SecretStr

from voice.endpoint_settings import EndpointKey, EndpointUrl, address


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Seconds until the first piece of an answer, for one whole spoken answer, and for one that nobody waits for: its
    caller usually ends it earlier.
    """

    first_token_s: float = 10.0
    total_s: float = 60.0
    completion_s: float = 600.0


USUAL_LIMITS = AnswerLimits()


class FallbackModelSettings(BaseModel, extra="forbid", frozen=True):
    """A model that is asked if the ones before it fail, `[[llm.fallback_models]]`."""

    model: Annotated[str, Field(min_length=1, description="The model's name at its endpoint.")]
    base_url: Annotated[EndpointUrl, Field(description="URL of its endpoint. Empty means llm.base_url.")] = ""
    api_key: Annotated[
        EndpointKey | None,
        Field(description="Its endpoint's key."),
    ] = None
    max_context_tokens: Annotated[
        int | None,
        Field(ge=1_024, le=4_000_000, description="Tokens it can take. Without it budget.max_context_tokens applies."),
    ] = None


class ModelPrice(BaseModel, extra="forbid", frozen=True):
    """What a model costs in US dollars, `[[llm.prices]]`."""

    model: Annotated[str, Field(min_length=1, description="The model's name: of llm, screen or realtime.")]
    prompt: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False, description="A million tokens sent to it.")]
    completion: Annotated[
        float, Field(ge=0, le=10_000, allow_inf_nan=False, description="A million tokens of its answers.")
    ]


class LlmSettings(BaseModel, extra="forbid", frozen=True):
    """The language model that answers. Without api_key and base_url an embedded responder quotes earlier speech."""

    base_url: Annotated[
        EndpointUrl,
        Field(
            description="URL of an OpenAI-compatible endpoint, for example http://127.0.0.1:11434/v1 of "
            "Ollama. Empty means OpenAI itself."
        ),
    ] = ""
    api_key: Annotated[
        EndpointKey | None,
        Field(
            description="The endpoint's key (OPENAI_API_KEY). Most local servers need none. Without key "
            "and base_url the bot quotes."
        ),
    ] = None
    model: Annotated[
        str,
        Field(
            min_length=1,
            description="The model's name at the endpoint.",
        ),
    ] = "gpt-4.1-mini"
    max_output_tokens: Annotated[
        int,
        Field(
            ge=16,
            le=4096,
            description="Most tokens of one reply: about a minute of speech.",
        ),
    ] = 300
    fallback_models: Annotated[
        tuple[FallbackModelSettings, ...],
        Field(
            max_length=4,
            description=(
                "Models that are asked in turn when the one before is down, slow or answers nonsense. Each is a "
                "table [[llm.fallback_models]]. All share the 20 s until a reply is first heard."
            ),
            examples=[[{"model": "llama3.2", "base_url": "http://127.0.0.1:11434/v1"}]],
        ),
    ] = ()

    prices: Annotated[
        tuple[ModelPrice, ...],
        Field(
            max_length=20,
            description="What models cost, in US dollars for a million tokens, as their provider lists it.",
            examples=[[{"model": "gpt-4.1-mini", "prompt": 0.4, "completion": 1.6}]],
        ),
    ] = ()

    def price_of(self, model: str) -> ModelPrice | None:
        """Return what a model costs; None: that is not known."""
        return next((each for each in self.prices if each.model == model), None)

    def fallbacks(self) -> tuple[LlmSettings, ...]:
        """Return complete settings for each fallback model; unset ones are taken from here."""
        return tuple(
            self.model_copy(
                update={
                    "model": each.model,
                    "base_url": each.base_url or self.base_url,
                    "api_key": each.api_key
                    or (self.api_key if self._is_here(each.base_url or self.base_url) else None),
                    "fallback_models": (),
                }
            )
            for each in self.fallback_models
        )

    def key_for(self, base_url: str, own: SecretStr | None) -> str:
        """Return the key for an endpoint: its own, or this one if the address is the same. Other addresses never get
        it.
        """
        if own is not None:
            return own.get_secret_value()
        return self.api_key.get_secret_value() if self.api_key is not None and self._is_here(base_url) else ""

    def _is_here(self, base_url: str) -> bool:
        return address(base_url).rstrip("/") == address(self.base_url).rstrip("/")

    @property
    def configured(self) -> bool:
        return bool(self.base_url or (self.api_key and self.api_key.get_secret_value()))
