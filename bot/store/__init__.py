"""The database: sessions, turns, notes, segments, search, people and guild settings.

Start with `database.open_database`; the store classes take the open `Database`. `tables` and
`migrations` hold the schema, `dialects` what differs between SQLite and PostgreSQL, `rows` how values become columns,
`inserts` how rows are added once.

- Stored: `turns`, `sessions`, `attendance` (who was there when), `posted_transcripts`, `history`, `tiers`, `people`,
  `prompts` and `servers`.
  `claims` keeps an older room from writing, and writes of one server apart. `personal_data` reads what is stored of one
  person. `own_rows` does so, and forgets, for the tables whose rows say whose they are.
- Found: `search` keeps the search index and finds passages in it.
- Removed: `speech_forgetting` what a person said, with `session_forgetting` in each session (`speakers` finds them,
  `quoted_turns` where else it was told; `forgettings` lists whom and where, so that open rooms and restored backups
  bring nothing back). `Database.wipe` removes their last bytes.
- Whole files: `backup`, which also restores.
"""
