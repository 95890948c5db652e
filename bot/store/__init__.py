"""The database: sessions, turns, notes, segments, search, people and guild settings.

Start with `database.open_database`; the store classes take the open `Database`. `tables` and `migrations` hold the
schema. `turns`, `sessions`, `history`, `tiers`, `people`, `prompts` and `guilds` store; `indexing`, `search` and
`vector_store` make it searchable, and `vector_search` finds embeddings, in memory or with pgvector; `forgetting`
removes what a person said. `dialects` has what differs between SQLite and PostgreSQL.
"""
