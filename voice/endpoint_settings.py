"""The types of the settings for an endpoint's address and key, and the address that is meant.

Nothing here needs the library of endpoints, which takes a second to load.

They are validated when settings are read, so that a typo is reported at the start with the setting's name.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, Field, SecretStr

OPENAI_URL = "https://api.openai.com/v1"


def address(base_url: str) -> str:
    """Return the address for a `base_url` setting. An empty setting means OpenAI itself."""
    return base_url or OPENAI_URL


def without_secrets(url: str) -> str:
    """Return an address for messages: without user and password, and without a query, which may have a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_this_machine(host: str) -> bool:
    """Return whether what is sent to this host stays on this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def checked_url(url: str) -> str:
    """Return an http or https address, or the empty string. Raises `ValueError` for anything else."""
    try:
        parts = urlsplit(url)
        valid = not url or (parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        # For example a port that is not a number, or an unclosed bracket of an IPv6 address.
        valid = False
    if not valid or not url.isprintable() or " " in url:
        raise ValueError("it is not an address that begins with http:// or https://")
    return url


def _checked_key(key: SecretStr) -> SecretStr:
    value = key.get_secret_value()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("it has characters that no key has. Copy it again, without quotes and blanks around it")
    return key


# An http or https address, or the empty string.
EndpointUrl = Annotated[str, AfterValidator(checked_url), Field(examples=["http://127.0.0.1:11434/v1"])]
EndpointKey = Annotated[SecretStr, AfterValidator(_checked_key)]
