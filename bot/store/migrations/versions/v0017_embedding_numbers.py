"""On PostgreSQL, a function that turns a stored embedding into numbers, for a server with pgvector.

It needs no extension, so that every database has the same schema. What needs pgvector comes and goes with it
(`bot.store.dialects.pgvector`).
"""

from bot.store.migrations.step import run_on_postgresql

revision = "0017"
down_revision = "0016"

STATEMENTS = (
    # PostgreSQL's bytes have no sign: XOR with 128 moves them so that subtracting 128 restores it.
    """
    CREATE FUNCTION roomtone_numbers(scale DOUBLE PRECISION, vector BYTEA) RETURNS REAL[]
    LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS $$
        SELECT ARRAY(
            SELECT ((((get_byte(vector, place) # 128) - 128) * scale))::real
            FROM generate_series(0, octet_length(vector) - 1) AS place ORDER BY place
        )
    $$
    """,
)


def upgrade() -> None:
    run_on_postgresql(STATEMENTS)
