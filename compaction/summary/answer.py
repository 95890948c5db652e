"""Reads a model's answer to a fold, and refuses what is none. Pure.

The error names only the kind of problem, because the answer may contain what people said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, OnErrorOmit
from pydantic_core import from_json

from compaction.errors import SummaryRefusedError
from compaction.language.text import UNSPACED, plain, whole_sentences, words
from compaction.model import FactKind, Importance, Turn
from compaction.untrusted_text import without_copied_marks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compaction.ports import CompletionAnswer

# If a text has this many words in a row from one turn, it is a copy of that turn. In a script without spaces a word is
# about two pairs of characters.
_COPIED_WORDS = 30
# Small models write raw line breaks in strings, which are not JSON.
_CONTROL = re.compile(r"[\x00-\x1f]")
# These open a text that is no summary. Endpoints and models write them in English whatever they are asked in.
_NO_SUMMARY = re.compile(
    r"^\W*(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:can't|cannot|won't)\b|sorry\W+(?:but )?i\b|as an ai\b"
    r"|(?:error|exception)\W*(?::|\d|$)|traceback \(|internal server error|bad gateway|service unavailable"
    r"|rate limit|too many requests|\d{3} (?:error|bad|internal|service|gateway)|<!doctype|<html)",
    re.IGNORECASE,
)


def _text(written: object) -> str:
    return plain(without_copied_marks(written)) if isinstance(written, str) else ""


def _kind(written: object) -> object:
    """An unknown kind is `other`, since the fact may still be good."""
    return written if written in set(FactKind) else FactKind.OTHER


def _importance(written: object) -> object:
    return int(written) if str(written) in {"1", "2", "3"} else 2  # type: ignore[call-overload]


def _listed(written: object) -> list[str]:
    return [str(each).strip() for each in (written if isinstance(written, list) else [written]) if each is not None]


_Text = Annotated[str, BeforeValidator(_text)]
_Labels = Annotated[list[str], BeforeValidator(_listed)]


class ModelFact(BaseModel):
    """A fact as the model wrote it. `turns`: numbers of turns and labels of notes. `closes`: labels of facts."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    turns: _Labels
    text: Annotated[_Text, Field(min_length=1)]
    kind: Annotated[FactKind, BeforeValidator(_kind)] = FactKind.OTHER
    importance: Annotated[Importance, BeforeValidator(_importance)] = 2
    closes: _Labels = []
    owner: _Text = ""
    until: _Text = ""


# A fact that is malformed is left out.
_Facts = Annotated[
    list[OnErrorOmit[ModelFact]], BeforeValidator(lambda written: written if isinstance(written, list) else [])
]


class ModelAnswer(BaseModel):
    """The answer to a fold, or what is whole of one that was cut off."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    heading: _Text = ""
    gist: _Text = ""
    facts: _Facts = []
    paragraph: _Text = ""


# The form that an endpoint is asked for. All fields are required, as some endpoints demand.
ANSWER_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "heading": {"type": "string"},
        "gist": {"type": "string"},
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "turns": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
                    "text": {"type": "string"},
                    "kind": {"type": "string", "enum": [each.value for each in FactKind]},
                    "importance": {"type": "integer", "enum": [1, 2, 3]},
                    "closes": {"type": "array", "items": {"type": "string"}},
                    "owner": {"type": "string"},
                    "until": {"type": "string"},
                },
                "required": ["turns", "text", "kind", "importance", "closes", "owner", "until"],
                "additionalProperties": False,
            },
        },
        "paragraph": {"type": "string"},
    },
    "required": ["heading", "gist", "facts", "paragraph"],
    "additionalProperties": False,
}


def parse_answer(answer: CompletionAnswer, turns: Iterable[Turn]) -> ModelAnswer:
    """Return the answer about these turns. A fact that is malformed is left out, and of an answer that was cut off what
    is not whole: the rest of a sentence, or of a fact.

    Raises SummaryRefusedError for an answer that is blank, an error text, a refusal, a copy of the turns, or not of the
    form, and for one in which neither a sentence of the summary nor a fact is whole.
    """
    text = _CONTROL.sub(" ", answer_text(answer))
    try:
        parsed = ModelAnswer.model_validate(_read(text[max(0, text.find("{")) :]))
    except (ValueError, TypeError, RecursionError) as error:
        raise SummaryRefusedError("The model's answer is not of the form that it was asked for.") from error
    if not (parsed.paragraph or parsed.facts):
        raise SummaryRefusedError("The model's answer has no summary, or was cut off before one.")
    for prose in (parsed.gist, parsed.paragraph):
        _refuse(prose, turns)
    return parsed


def _read(text: str) -> object:
    """Return the object of a text; of one that was cut off, its whole parts. Raises ValueError for anything else."""
    whole = text[: text.rfind("}") + 1]
    try:
        return from_json(whole)
    except ValueError:
        begun = dict(from_json(text, allow_partial="trailing-strings"))
        # Behind its last bracket stands no whole fact.
        facts = from_json(whole, allow_partial=True).get("facts") if whole else None
        paragraph = whole_sentences(_text(begun.get("paragraph")), len(text))
        gist = whole_sentences(_text(begun.get("gist")), len(text))
        heading = begun.get("heading") if gist else ""
        return {"heading": heading, "gist": gist, "paragraph": paragraph, "facts": facts}


def whole_answer(answer: CompletionAnswer) -> str:
    """Return the text of an answer. Raises SummaryRefusedError if it is blank, cut off or withheld."""
    if answer.finish_reason == "length":
        raise SummaryRefusedError("The model's answer was cut off at its length limit.")
    return answer_text(answer)


def answer_text(answer: CompletionAnswer) -> str:
    """Return the text of an answer, which may be cut off. Raises SummaryRefusedError if it is blank or withheld."""
    text = answer.text.strip()
    if not text:
        raise SummaryRefusedError("The model gave a blank answer.")
    if answer.finish_reason == "content_filter":
        raise SummaryRefusedError("The model's provider withheld the answer.")
    if _NO_SUMMARY.search(text):
        raise SummaryRefusedError("The model answered with a refusal or an error text.")
    return text


def _refuse(prose: str, turns: Iterable[Turn]) -> None:
    if _NO_SUMMARY.search(prose):
        raise SummaryRefusedError("The model answered with a refusal or an error text.")
    written, many = words(prose), _COPIED_WORDS * (1 if UNSPACED.search(prose) is None else 2)
    runs = {tuple(written[at : at + many]) for at in range(len(written) - many + 1)}
    for turn in turns if runs else ():
        said = words(turn.text)
        if any(tuple(said[at : at + many]) in runs for at in range(len(said) - many + 1)):
            raise SummaryRefusedError("The model copied its input.")
