"""The sixth step of the database's shape: texts that were sent to a model, kept to be explained. Frozen as shipped."""

from __future__ import annotations

SENT_STEP = (
    """
    CREATE TABLE sent_texts (
        session_id VARCHAR NOT NULL,
        digest VARCHAR NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (session_id, digest),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
)
