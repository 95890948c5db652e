"""In which languages speech is heard, and in which while its own is not sure."""

from __future__ import annotations

import pytest

from bot.server_settings import ServerSettings, language_in, language_to_assume


@pytest.mark.parametrize(
    ("chosen", "locale", "code"),
    [
        ("de", "en-US", "de"),
        ("pt-BR", "de", "pt"),
        (None, "sv-SE", "sv"),
        (None, "en-GB", "en"),
        # What Discord says of a server that has chosen nothing tells nothing.
        (None, "en-US", ""),
        ("en", "de", "en"),
    ],
)
def test_the_language_to_assume_is_the_servers_choice_or_its_own(chosen: str | None, locale: str, code: str) -> None:
    """Speech of an unsure language is heard in the server's, if anybody has chosen one."""
    settings = ServerSettings(language=chosen)
    assert language_to_assume(settings, language_in(settings, locale)) == code


@pytest.mark.parametrize(
    ("server", "operator", "spoken"),
    [
        ((), (), ()),
        ((), ("en", "de"), ("en", "de")),
        (("de", "fr"), (), ("de", "fr")),
        (("de", "fr"), ("en", "de"), ("de",)),
        # The operator has chosen anew since.
        (("fr",), ("en", "de"), ("en", "de")),
    ],
)
def test_a_server_only_narrows_what_its_operator_has_set(
    server: tuple[str, ...], operator: tuple[str, ...], spoken: tuple[str, ...]
) -> None:
    """Nothing chosen means what the operator has set; nothing set there means any."""
    assert ServerSettings(spoken=server).languages_spoken(operator) == spoken
