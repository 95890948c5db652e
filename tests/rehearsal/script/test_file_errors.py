"""Mistakes in a file that a person wrote are reported in plain sentences."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rehearsal.script.file_errors import format_location, format_mistake, format_validation_errors


class Shelf(BaseModel):
    """A model in which every kind of validation error can occur."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1)
    width: float = Field(gt=0, le=9)
    full: bool = False
    books: list[int] = []


def found(value: object) -> str:
    """Return the error messages for a value that should be a shelf."""
    with pytest.raises(ValidationError) as caught:
        Shelf.model_validate(value)
    examples = {"width": "width = 2.5"}
    listed = format_validation_errors(
        caught.value, Path("room.toml"), place="shelf 2", known=Shelf.model_fields, examples=examples
    )
    return "\n".join(listed)


def test_a_sentence_has_file_place_and_example() -> None:
    """A message has the file, the place, the problem and an example, in this order, and one full stop."""
    said = format_mistake(Path("a.toml"), "people.mira", "it is empty.", example='name = "Mira"')
    assert said == 'a.toml, people.mira: it is empty. Example: name = "Mira"'
    assert format_mistake(Path("a.toml"), "", "it is empty") == "a.toml: it is empty."


def test_people_count_from_one() -> None:
    """Positions in a list count from one."""
    assert format_location(("people", "mira", "id")) == "people.mira.id"
    assert format_location(("steps", 2, "say")) == "steps number 3.say"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"width": 1.0}, "shelf 2.name: `name` is missing."),
        ({"name": "", "width": 1.0}, "shelf 2.name: it is empty."),
        ({"name": 3, "width": 1.0}, "shelf 2.name: 3 is not text in quotation marks."),
        ({"name": "a", "width": 0.0}, "shelf 2.width: 0.0 must be more than 0.0. Example: width = 2.5"),
        ({"name": "a", "width": 10.0}, "10.0 must be at most 9.0"),
        ({"name": "a", "width": "wide"}, '"wide" is not a number that fits here'),
        ({"name": "a", "width": 1.0, "full": 2}, "2 is neither true nor false"),
        ({"name": "a", "width": 1.0, "hue": 2}, "there is no key `hue` here; the keys are name, width"),
        ({"name": "a", "width": 1.0, "books": ["x" * 99]}, "shelf 2.books number 1:"),
        (3, "shelf 2: 3: "),
    ],
)
def test_what_pydantic_finds_is_said_in_words(value: object, said: str) -> None:
    """Each pydantic error becomes one sentence with short values and without technical terms."""
    assert said in found(value)
    assert len(found(value).splitlines()[0]) < 220


def test_every_mistake_gets_its_sentence() -> None:
    """All mistakes are reported at once, each in its own sentence."""
    assert len(found({"name": "", "width": 0.0, "hue": 1}).splitlines()) == 3
