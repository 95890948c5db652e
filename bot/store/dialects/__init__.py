"""What differs between SQLite and PostgreSQL; the rest of the store is the same for both.

`port` lists the differences. `sqlite` and `postgresql` open connections; `sqlite_sql` and `postgresql_sql` have the
queries that SQLAlchemy cannot express for both, and translate errors. For PostgreSQL alone, `postgresql_lock` divides a
database among the processes of a bot.
"""
