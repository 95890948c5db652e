"""Memory search: passages with their terms, tags and embeddings, and an FTS5 index over the terms.

Triggers keep the index up to date: when a turn, a note, a segment or a session is deleted or forgotten, its passages
and index entries go in the same transaction.
"""

from bot.store.migrations.step import run_on_sqlite

revision = "0002"
down_revision = "0001"

STATEMENTS = (
    """
    CREATE TABLE passages (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        session_id VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        "key" VARCHAR NOT NULL,
        start_seq INTEGER,
        at FLOAT NOT NULL,
        own TEXT NOT NULL,
        preceding TEXT NOT NULL,
        following TEXT NOT NULL,
        tags TEXT NOT NULL,
        embedded_by VARCHAR,
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    'CREATE UNIQUE INDEX one_passage_a_thing ON passages (session_id, kind, "key")',
    "CREATE INDEX passages_by_turn ON passages (session_id, start_seq)",
    "CREATE INDEX passages_by_time ON passages (at)",
    "CREATE INDEX passages_to_embed ON passages (id) WHERE embedded_by IS NULL",
    """
    CREATE TABLE passage_vectors (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        passage_id INTEGER NOT NULL,
        model VARCHAR NOT NULL,
        scale FLOAT NOT NULL,
        vector BLOB NOT NULL,
        FOREIGN KEY(passage_id) REFERENCES passages (id) ON DELETE CASCADE
    )
    """,
    "CREATE UNIQUE INDEX one_vector_a_passage ON passage_vectors (passage_id)",
    """
    CREATE TABLE corrections (
        session_id VARCHAR NOT NULL,
        old_seq INTEGER NOT NULL,
        new_seq INTEGER NOT NULL,
        PRIMARY KEY (session_id, old_seq),
        FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
    )
    """,
    "CREATE TABLE search_marks (name VARCHAR NOT NULL PRIMARY KEY, value INTEGER NOT NULL)",
    "INSERT INTO search_marks (name, value) VALUES ('generation', 0), ('purged', 0)",
    """
    CREATE VIRTUAL TABLE passage_index USING fts5(
        own, preceding, following, tags,
        content='passages', content_rowid='id', tokenize='unicode61 remove_diacritics 0'
    )
    """,
    "CREATE VIRTUAL TABLE passage_terms USING fts5vocab('passage_index', 'row')",
    """
    CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
        INSERT INTO passage_index (rowid, own, preceding, following, tags)
        VALUES (new.id, new.own, new.preceding, new.following, new.tags);
    END
    """,
    """
    CREATE TRIGGER passage_changed AFTER UPDATE OF own, preceding, following, tags ON passages BEGIN
        INSERT INTO passage_index (passage_index, rowid, own, preceding, following, tags)
        VALUES ('delete', old.id, old.own, old.preceding, old.following, old.tags);
        INSERT INTO passage_index (rowid, own, preceding, following, tags)
        VALUES (new.id, new.own, new.preceding, new.following, new.tags);
    END
    """,
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
    """
    CREATE TRIGGER turn_forgotten AFTER UPDATE OF tombstone, parts ON turns BEGIN
        DELETE FROM passages WHERE session_id = new.session_id AND kind = 'turn' AND start_seq = new.seq;
    END
    """,
    """
    CREATE TRIGGER turn_deleted AFTER DELETE ON turns BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'turn' AND start_seq = old.seq;
        DELETE FROM corrections WHERE session_id = old.session_id AND (old_seq = old.seq OR new_seq = old.seq);
    END
    """,
    """
    CREATE TRIGGER note_deleted AFTER DELETE ON notes BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'note' AND "key" = old.id;
    END
    """,
    """
    CREATE TRIGGER note_changed AFTER UPDATE OF who, what ON notes BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'note' AND "key" = old.id;
    END
    """,
    """
    CREATE TRIGGER segment_deleted AFTER DELETE ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    END
    """,
    """
    CREATE TRIGGER segment_changed AFTER UPDATE OF gist, facts ON segments BEGIN
        DELETE FROM passages WHERE session_id = old.session_id AND kind = 'segment' AND "key" = old.id;
    END
    """,
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
