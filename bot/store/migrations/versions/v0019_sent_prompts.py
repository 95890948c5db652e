"""Which session was sent which prompt, so that a prompt goes with the last of them; and whose screen a note is of.

A deleted session also leaves the list of those that are frozen. Nobody knows which session had the prompts of before:
each counts as sent in every session, until it ended or, if it is open, until its last turn. Notes of before have no id.
"""

from bot.store.migrations.step import run_on_postgresql, run_on_sqlite

revision = "0019"
down_revision = "0018"

_TABLES = (
    """
    CREATE TABLE sent_prompts (
        session_id {text} NOT NULL,
        digest {text} NOT NULL,
        sent_at FLOAT NOT NULL,
        PRIMARY KEY (session_id, digest),
        FOREIGN KEY (session_id) REFERENCES sessions (id) ON DELETE CASCADE,
        FOREIGN KEY (digest) REFERENCES prompts (digest) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX sent_prompts_by_digest ON sent_prompts (digest)",
    """
    INSERT INTO sent_prompts (session_id, digest, sent_at)
    SELECT s.id, p.digest, coalesce(
        s.ended_at, (SELECT max(t.ended_at) FROM turns t WHERE t.session_id = s.id), s.started_at
    )
    FROM sessions s CROSS JOIN prompts p
    """,
    "DELETE FROM prompts WHERE NOT EXISTS (SELECT 1 FROM sent_prompts WHERE sent_prompts.digest = prompts.digest)",
    "ALTER TABLE notes ADD COLUMN person_id {text}",
    "CREATE INDEX notes_by_person ON notes (person_id)",
    "DELETE FROM tier_opt_outs WHERE scope = 'session' AND name NOT IN (SELECT id FROM sessions)",
)

ON_SQLITE = (
    *(each.format(text="VARCHAR") for each in _TABLES),
    """
    CREATE TRIGGER prompt_unused AFTER DELETE ON sent_prompts
    WHEN NOT EXISTS (SELECT 1 FROM sent_prompts WHERE digest = old.digest) BEGIN
        DELETE FROM prompts WHERE digest = old.digest;
    END
    """,
    """
    CREATE TRIGGER session_deleted AFTER DELETE ON sessions BEGIN
        DELETE FROM tier_opt_outs WHERE scope = 'session' AND name = old.id;
    END
    """,
)
ON_POSTGRESQL = (
    *(each.format(text='VARCHAR COLLATE "C"') for each in _TABLES),
    """
    CREATE FUNCTION prompt_unused() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM prompts
        WHERE digest = old.digest AND NOT EXISTS (SELECT 1 FROM sent_prompts WHERE digest = old.digest);
        RETURN NULL;
    END $$
    """,
    "CREATE TRIGGER prompt_unused AFTER DELETE ON sent_prompts FOR EACH ROW EXECUTE FUNCTION prompt_unused()",
    """
    CREATE FUNCTION session_deleted() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM tier_opt_outs WHERE scope = 'session' AND name = old.id;
        RETURN NULL;
    END $$
    """,
    "CREATE TRIGGER session_deleted AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION session_deleted()",
)
STATEMENTS = (*ON_SQLITE, *ON_POSTGRESQL)


def upgrade() -> None:
    run_on_sqlite(ON_SQLITE)
    run_on_postgresql(ON_POSTGRESQL)
