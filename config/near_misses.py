"""Recognises variables that are nearly right: a mistyped name, or quotes that belong to the value.

`.env` is a file that people write by hand, and a misspelt name in it would go unnoticed: any other program's variables
may stand there too.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from config.location import OPTION_VARIABLES
from config.problems import VARIABLE_PREFIX
from config.schema import SETTINGS, WELL_KNOWN_VARIABLES, variable_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from config.sources import Variable

# Names at least this similar are probably the same name: OPENAI_KEY is, ANTHROPIC_API_KEY is not OPENAI_API_KEY.
_ALIKE = 0.83
# What opens a quotation, and what closes it. Text programs turn straight quotes into curly ones.
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "`": "`"}


def near_misses(variables: Sequence[Variable]) -> list[str]:
    """Return a sentence for each variable that was probably meant to be one of ours. The sentences contain no value."""
    filled = {each.name for each in variables if each.value.strip()}
    sentences: list[str] = []
    for variable in variables:
        name = variable.name
        if not variable.value.strip() or name in WELL_KNOWN_VARIABLES or name.startswith(VARIABLE_PREFIX):
            continue
        if (meant := _meant(name)) is not None and meant not in filled:
            sentences.append(f"{name} in {variable.place} is not read. Did you mean {meant}?")
    return sentences


def without_quotes(variables: Iterable[Variable]) -> tuple[list[Variable], list[str]]:
    """Return the variables without quotes around the values of ours, and a sentence for each that had some.

    `.env` needs no quotes, and a reader such as Docker's passes them on as a part of the value.
    """
    cleaned: list[Variable] = []
    sentences: list[str] = []
    for variable in variables:
        value = variable.value.strip()
        if _is_ours(variable.name) and len(value) > 1 and _QUOTES.get(value[0]) == value[-1]:
            sentences.append(
                f"{variable.name} in {variable.place} has quotes around its value, which are left out. Delete them."
            )
            cleaned.append(replace(variable, value=value[1:-1]))
        else:
            cleaned.append(variable)
    return cleaned, sentences


def _meant(name: str) -> str | None:
    candidates = [*WELL_KNOWN_VARIABLES, *OPTION_VARIABLES]
    if "__" in name:
        candidates += [variable_of(key) for key in SETTINGS]
    close = difflib.get_close_matches(name.upper(), candidates, n=1, cutoff=_ALIKE)
    return close[0] if close else None


def _is_ours(name: str) -> bool:
    if name in WELL_KNOWN_VARIABLES or name in OPTION_VARIABLES:
        return True
    # A list may begin and end with quotes that belong to its entries.
    setting = next((each for each in SETTINGS.values() if each.variable == name), None)
    return setting is not None and not setting.collection
