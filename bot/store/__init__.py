"""The database: sessions, turns, notes, segments, search, people and guild settings.

Start with `database.open_database`; the store classes take the open `Database`. `tables` (with the types of `columns`)
and `migrations` hold the schema, `dialects` what differs between SQLite and PostgreSQL, `rows` how values become
columns, `inserts` how rows are added once.

- Stored: `turns`, `sessions`, `history`, `tiers`, `people`, `prompts`, `guilds` and `servers`. `claims` keeps an older
  room from writing.
- Found: `search` keeps the search index and finds passages in it.
- Removed: `forgetting` what a person said (`speakers` finds them, `rebuilding` makes anew what was made of it,
  `forgotten_hashes` keeps it from coming back with an import, `forgetting_notes` with what open rooms still store),
  `ageing` what is old; `wiping` its last bytes.
- Whole files: `backup`, `restore` and `restore_merge`; `segment_import`; `write_check`.
"""
