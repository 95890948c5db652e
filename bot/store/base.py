"""What the tables are made on: their common catalogue, and the type of text that comes from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import MetaData, Text, TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy import Dialect

metadata = MetaData()


class Prose(TypeDecorator[str]):
    """Text from outside. A lone surrogate, which no encoding of text can hold, becomes the replacement character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return `value` as it can be stored."""
        return None if value is None else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
