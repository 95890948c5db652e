"""The eighth step of the database's shape: up to where nothing is drawn of somebody any more. Frozen as shipped."""

from __future__ import annotations

FORGETS_STEP = (
    """
    CREATE TABLE person_forgets (
        session_id VARCHAR NOT NULL,
        person_id VARCHAR NOT NULL,
        through_seq INTEGER NOT NULL,
        PRIMARY KEY (session_id, person_id),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
)
