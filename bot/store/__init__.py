"""The database: sessions, turns, notes, segments, search, people and guild settings.

Start with `database.open_database`; the store classes take the open `Database`. `tables` (with the types of `columns`),
`triggers` and `migrations` hold the schema, `dialects` what differs between SQLite and PostgreSQL, `rows` how values
become columns, `inserts` how rows are added once, `number_range` how large a number may be.

- Stored: `turns`, `sessions`, `attendance` (who was there when), `posted_transcripts`, `history`, `tiers` (by
  `tier_rows`), `people`, `prompts`, `opt_outs` and `servers`.
  `claims` keeps an older room from writing, and writes of one server apart. `stored_memory` reads what a session goes
  on with, and `personal_data` what is stored of one person.
- Found: `search` keeps the search index and finds passages in it.
- Removed: `speech_forgetting` what a person said, with `session_forgetting` in each session (`speakers` finds them,
  `quoted_turns` where else it was told; `forgotten_sessions` lists where, `forgettings` whom, so that open rooms and
  restored backups bring nothing back, both by `forgetting_key`), `session_expiry` whole sessions. `Database.wipe`
  removes their last bytes.
- Whole files: `backup` and `restore`; `write_check`.
"""
