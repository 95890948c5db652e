"""The types of the settings for an endpoint's address and key, and the address that is meant.

Nothing here needs the library of endpoints, which takes a second to load.

They are validated when settings are read, so that a typo is reported at the start with the setting's name.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, Field, SecretStr, ValidatorFunctionWrapHandler, WrapValidator

OPENAI_URL = "https://api.openai.com/v1"


class Url(str):
    """The address of a server in the settings, as it may be shown: without user and password, and without a query,
    which may have a key. However it is printed, nothing else can come out. `whole`: has them, for connecting.
    """

    whole: SecretStr

    def __new__(cls, whole: str) -> Self:
        parts = urlsplit(whole)
        self = super().__new__(cls, urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")))
        self.whole = SecretStr(whole)
        return self


def address(base_url: str) -> str:
    """Return the address for a `base_url` setting. An empty setting means OpenAI itself."""
    return base_url or OPENAI_URL


def to_connect(url: str) -> str:
    """Return all of an address, for connecting and nothing else."""
    return url.whole.get_secret_value() if isinstance(url, Url) else url


def is_this_machine(host: str) -> bool:
    """Return whether what is sent to this host stays on this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_url(given: object, read: ValidatorFunctionWrapHandler) -> Url:
    """Return an http or https address, or the empty string. Raises `ValueError` for anything else."""
    if isinstance(given, Url):
        return given
    url: str = read(given)
    if url:
        _require_address(url)
    return Url(url)


def _checked_secret_url(given: SecretStr) -> SecretStr:
    _require_address(given.get_secret_value())
    return given


def _require_address(url: str) -> None:
    """Raise `ValueError` unless it is an http or https address."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        # For example a port that is not a number, or an unclosed bracket of an IPv6 address.
        valid = False
    if not valid or not url.isprintable() or " " in url:
        raise ValueError("it is not an address that begins with http:// or https://")


def _checked_key(key: SecretStr) -> SecretStr:
    value = key.get_secret_value()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("it has characters that no key has. Copy it again, without quotes and blanks around it")
    return key


# An http or https address, or the empty string.
EndpointUrl = Annotated[str, WrapValidator(_checked_url), Field(examples=["http://127.0.0.1:11434/v1"])]
# An address that has a key in its path, as webhooks do.
SecretUrl = Annotated[SecretStr, AfterValidator(_checked_secret_url)]
EndpointKey = Annotated[SecretStr, AfterValidator(_checked_key)]
