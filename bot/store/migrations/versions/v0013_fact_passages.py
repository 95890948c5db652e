"""Passages of facts that a model wrote, which go with their segment or turn.

'$' is the character after '#': a range uses the index. Without its passage, a segment with such facts is indexed again
at the next start, with these facts.
"""

from bot.store.migrations.step import run_on_sqlite

revision = "0013"
down_revision = "0012"

STATEMENTS = (
    """
    DELETE FROM passages WHERE kind = 'segment' AND EXISTS (
        SELECT 1 FROM segments WHERE segments.session_id = passages.session_id AND segments.id = passages."key"
        AND (segments.facts LIKE '%"quoted":false%' OR segments.facts LIKE '%"quoted": false%')
    )
    """,
    """
    CREATE TRIGGER facts_of_segment_deleted AFTER DELETE ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact'
        AND "key" >= old.id || '#' AND "key" < old.id || '$';
    END
    """,
    """
    CREATE TRIGGER facts_of_segment_changed AFTER UPDATE OF gist, facts ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact'
        AND "key" >= old.id || '#' AND "key" < old.id || '$';
    END
    """,
    """
    CREATE TRIGGER facts_of_turn_forgotten AFTER UPDATE OF tombstone, parts ON turns BEGIN
        DELETE FROM passages WHERE session_id = new.session_id AND kind = 'fact' AND start_seq = new.seq;
    END
    """,
    """
    CREATE TRIGGER facts_of_turn_deleted AFTER DELETE ON turns BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'fact' AND start_seq = old.seq;
    END
    """,
)


def upgrade() -> None:
    run_on_sqlite(STATEMENTS)
