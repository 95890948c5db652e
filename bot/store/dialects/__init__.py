"""What differs between SQLite and PostgreSQL; the rest of the store is the same for both.

`port` lists the differences. `sqlite` and `postgresql` open connections, translate errors and remove deleted bytes;
`sqlite_sql` and `postgresql_sql` have the queries that SQLAlchemy cannot express for both. `postgresql_strangers` finds
other users of a server who could harm it. `pgvector` lets a PostgreSQL that has it search the embeddings. `upsert`
inserts a row unless it is there.
"""
