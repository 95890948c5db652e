"""Which key is sent to which endpoint."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from bot.llm.settings import FallbackModelSettings, LlmSettings

URL = "http://127.0.0.1:9/v1"
CHAT = SecretStr("chat")


@pytest.mark.parametrize(
    ("base_url", "own", "llm", "key"),
    [
        (URL, SecretStr("mine"), LlmSettings(api_key=CHAT), "mine"),
        (URL, SecretStr("mine"), LlmSettings(base_url=URL, api_key=CHAT), "mine"),
        (URL, None, LlmSettings(base_url=URL + "/", api_key=CHAT), "chat"),
        (URL, None, LlmSettings(api_key=CHAT), ""),
        ("", None, LlmSettings(api_key=CHAT), "chat"),
        ("", None, LlmSettings(base_url=URL, api_key=CHAT), ""),
        ("https://api.openai.com/v1", None, LlmSettings(api_key=CHAT), "chat"),
        ("", None, LlmSettings(base_url="https://api.openai.com/v1/", api_key=CHAT), "chat"),
        ("", None, LlmSettings(), ""),
    ],
)
def test_a_key_goes_only_where_it_belongs(base_url: str, own: SecretStr | None, llm: LlmSettings, key: str) -> None:
    """The chat model's key is sent only to the chat model's address."""
    assert llm.key_for(base_url, own) == key


@pytest.mark.parametrize(
    ("base_url", "own", "key"),
    [
        ("", None, CHAT),
        (URL, None, CHAT),
        (URL + "/", None, CHAT),
        (URL, "mine", SecretStr("mine")),
        (URL[:-3], None, None),
    ],
)
def test_a_fallback_model_at_the_same_address_has_its_key(
    base_url: str, own: str | None, key: SecretStr | None
) -> None:
    """Also if the address is written out. Another one gets no key but its own."""
    fallback = FallbackModelSettings.model_validate({"model": "m", "base_url": base_url, "api_key": own})
    llm = LlmSettings(base_url=URL, api_key=CHAT, max_output_tokens=50, fallback_models=(fallback,))
    (settings,) = llm.fallbacks()
    assert (settings.model, settings.max_output_tokens, settings.fallback_models) == ("m", 50, ())
    assert settings.api_key == key
    assert settings.base_url.rstrip("/") in {URL, URL[:-3]}
