"""Databases of the first version with memory search count deletions under the name that all later versions read.

It named the mark 'deletions'. In such a database nothing noticed a deletion: forgotten words stayed in the pages of the
index, and forgotten embeddings in memory. In every other database this makes the same triggers again.
"""

from bot.store.migrations.step import run_on_sqlite

revision = "0014"
down_revision = "0013"

STATEMENTS = (
    "DELETE FROM search_marks WHERE name = 'deletions'",
    # A purge is due: 'generation' is ahead of 'purged'. Marks that are there stay.
    "INSERT INTO search_marks (name, value) VALUES ('generation', 1) ON CONFLICT (name) DO NOTHING",
    "INSERT INTO search_marks (name, value) VALUES ('purged', 0) ON CONFLICT (name) DO NOTHING",
    "DROP TRIGGER passage_deleted",
    """
    CREATE TRIGGER passage_deleted AFTER DELETE ON passages BEGIN
        INSERT INTO passage_index (passage_index, rowid, own, preceding, following, tags)
        VALUES ('delete', old.id, old.own, old.preceding, old.following, old.tags);
        UPDATE passages SET following = ''
        WHERE old.kind = 'turn' AND session_id = old.session_id AND kind = 'turn' AND start_seq = old.start_seq - 1;
        UPDATE passages SET preceding = ''
        WHERE old.kind = 'turn' AND session_id = old.session_id AND kind = 'turn' AND start_seq = old.start_seq + 1;
        UPDATE search_marks SET value = value + 1 WHERE name = 'generation';
    END
    """,
    "DROP TRIGGER session_placed",
    """
    CREATE TRIGGER session_placed AFTER UPDATE OF guild_id, channel_id ON sessions BEGIN
        UPDATE passages SET tags = replace(replace(tags, 'gnone', 'g' || coalesce(new.guild_id, 'none')),
            'cnone', 'c' || coalesce(new.channel_id, 'none'))
        WHERE session_id = new.id;
        UPDATE search_marks SET value = value + 1 WHERE name = 'generation';
    END
    """,
)


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
