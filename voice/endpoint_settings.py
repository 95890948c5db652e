"""What a setting may say of an endpoint: its address and its key.

Checked where settings are read, so that a slip of the pen is told at the start, by the setting's name, and not as a
failure of the endpoint's an hour later.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        sound = not url or (parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        # A port that is no number, or half a bracket of an IPv6 address.
        sound = False
    if not sound or not url.isprintable():
        raise ValueError("it is no address that begins with http:// or https://")
    return url


def _checked_key(key: SecretStr) -> SecretStr:
    value = key.get_secret_value()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("it has characters that no key has. Copy it again, without quotes and blanks around it")
    return key


# An http or https address, or the empty string.
EndpointUrl = Annotated[str, AfterValidator(_checked_url), Field(examples=["http://127.0.0.1:11434/v1"])]
EndpointKey = Annotated[SecretStr, AfterValidator(_checked_key)]
