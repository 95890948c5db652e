"""The database: sessions, turns, notes, segments, search, people and guild settings.

Start with `database.open_database`; the store classes take the open `Database`. `tables` (with the types of `columns`)
and `migrations` hold the schema, `dialects` what differs between SQLite and PostgreSQL, `rows` how values become
columns, `inserts` how rows are added once.

- Stored: `turns`, `sessions`, `history`, `tiers`, `people`, `prompts`, `guilds` and `servers`. `claims` keeps an older
  room from writing.
- Search: `indexing` and `vector_store` make things findable, `search` and `vector_search` find them.
- Removed: `forgetting` what a person said (`speakers` finds them, `rebuilding` makes anew what was made of it,
  `forgotten` keeps it from coming back), `ageing` what is old; `wiping` its last bytes.
- Whole files: `backup`, `restore` and `restore_merge`; `segment_import`; `write_check`.
"""
