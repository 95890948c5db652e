"""A mistake in an address or a key is reported when the settings are read."""

from __future__ import annotations

import pytest
from pydantic import SecretStr, TypeAdapter, ValidationError

from voice.endpoint import Endpoint
from voice.endpoint_settings import OPENAI_URL, EndpointKey, EndpointUrl, without_secrets

URL = TypeAdapter[str](EndpointUrl)
KEY = TypeAdapter[SecretStr](EndpointKey)


@pytest.mark.parametrize(
    "url",
    ["", "http://127.0.0.1:11434/v1", "https://api.example.org/v1/", "http://[::1]:8000/v1", "http://gpu-box/v1"],
)
def test_addresses_are_taken_as_they_are(url: str) -> None:
    """A valid address is kept unchanged, and an empty one means OpenAI."""
    assert URL.validate_python(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:11434/v1",
        "http://127.0.0.1:PORT/v1",
        "http://127.0.0.1:70000/v1",
        "ftp://x/v1",
        "http:///v1",
        "http://[::1/v1",
        "http://x/\n",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """An invalid address is refused before any request."""
    with pytest.raises(ValidationError, match="not an address that begins with http"):
        URL.validate_python(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
        ("https://bot:hunter2@models.example:8443/v1/?key=hunter2", "https://models.example:8443/v1/"),
        ("https://hunter2@[::1]:8000/v1#hunter2", "https://[::1]:8000/v1"),
    ],
)
def test_a_sentence_has_no_password_of_an_address(url: str, shown: str) -> None:
    """A server behind a proxy may want one in its address. `/status` shows sentences to everybody in the channel."""
    assert without_secrets(url) == shown
    assert Endpoint(url, "m").where == (shown or OPENAI_URL)


@pytest.mark.parametrize("key", ["", "none", "sk-proj-A_b-9", "hf_x.y=/+"])
def test_keys_stay_secret_and_whole(key: str) -> None:
    """A key may have any visible ASCII characters and is kept unchanged."""
    assert KEY.validate_python(key).get_secret_value() == key


@pytest.mark.parametrize("key", ["…", "\u201csk-abc\u201d", "sk-abc\n", "sk abc", " sk-abc"])
def test_what_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    """A key with curly quotes, white space or an ellipsis does not fit into a header. It is refused without being
    shown.
    """
    with pytest.raises(ValidationError, match="characters that no key has") as refused:
        KEY.validate_python(SecretStr(key))
    assert "abc" not in str(refused.value)
