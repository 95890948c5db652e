"""Chapters over segments, the paragraph of each fold, and facts with turns, a kind, a subject and an importance.

A recursive segment had the paragraph as its gist and no facts of use; its first sentence becomes the gist. Without its
trigger, the change of format leaves the search index as it is.
"""

from bot.store.migrations.step import run_on_sqlite

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    "ALTER TABLE segments ADD COLUMN paragraph TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE segments ADD COLUMN paragraph_problem TEXT NOT NULL DEFAULT ''",
    """
    UPDATE segments SET paragraph = gist, facts = '[]',
        gist = substr(substr(gist, 1, instr(replace(replace(gist, '! ', '. '), '? ', '. ') || '. ', '. ')), 1, 300)
    WHERE summariser LIKE 'recursive%' OR summariser LIKE '% recursive%'
    """,
    "DROP TRIGGER segment_changed",
    """
    UPDATE segments SET facts = (
        SELECT json_group_array(json(fact)) FROM (
            SELECT json_remove(
                json_set(
                    each.value,
                    '$.turns', json_array(each.value -> '$.turn_seq'),
                    '$.kind', CASE each.value ->> '$.slot'
                        WHEN 'people' THEN 'lasting'
                        WHEN 'activity' THEN 'doing'
                        WHEN 'thread' THEN 'open'
                        WHEN 'decision' THEN 'decision'
                        ELSE 'other'
                    END,
                    '$.subject', each.value -> '$.speaker',
                    '$.importance', 2,
                    '$.quoted', json('true')
                ),
                '$.turn_seq', '$.slot'
            ) AS fact
            FROM json_each(segments.facts) AS each ORDER BY each.key
        )
    )
    WHERE facts <> '[]'
    """,
    """
    CREATE TRIGGER segment_changed AFTER UPDATE OF gist, facts ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    END
    """,
    """
    CREATE TABLE chapters (
        session_id VARCHAR NOT NULL,
        id VARCHAR NOT NULL,
        level INTEGER NOT NULL,
        start_seq INTEGER NOT NULL,
        end_seq INTEGER NOT NULL,
        started_at FLOAT NOT NULL,
        ended_at FLOAT NOT NULL,
        gist TEXT NOT NULL,
        refs TEXT NOT NULL,
        summariser VARCHAR NOT NULL,
        created_at FLOAT NOT NULL,
        paragraph TEXT NOT NULL,
        paragraph_problem TEXT NOT NULL,
        PRIMARY KEY (session_id, id),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    "ALTER TABLE landings ADD COLUMN chapter_id VARCHAR",
)


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
