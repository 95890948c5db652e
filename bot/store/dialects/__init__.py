"""What differs between SQLite and PostgreSQL; the rest of the store is the same for both.

`port` lists the differences. `sqlite` and `postgresql` open connections and remove deleted bytes; `sqlite_failures` and
`postgresql_failures` translate errors; `sqlite_sql` and `postgresql_sql` have the queries that SQLAlchemy cannot
express for both, but for the `conditions` of a search and `upsert`, which inserts a row unless it is there.

For SQLite alone, `reader` runs reads in threads, and `stalled_connections` gives up those that do not come back. For
PostgreSQL alone, `postgresql_lock` divides a database among the processes of a bot, and `postgresql_strangers` finds
other users of a server who could harm it.
"""
