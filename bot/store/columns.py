"""Column types that the tables share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, Integer, String, Text, TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy import Dialect

# SQLite gives ids only to columns that are called INTEGER; its integers have 64 bits all the same.
Number = BigInteger().with_variant(Integer(), "sqlite")
# Ids and keys are compared byte by byte on both databases, whatever the language of a PostgreSQL database.
Key = String().with_variant(String(collation="C"), "postgresql")


class Prose(TypeDecorator[str]):
    """Text from outside. A lone surrogate, which UTF-8 cannot encode, becomes the replacement character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return `value` in a form that can be stored."""
        if value is None:
            return None
        encodable = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        # PostgreSQL stores every character but this one.
        return encodable if dialect.name == "sqlite" else encodable.replace("\0", "\N{REPLACEMENT CHARACTER}")
