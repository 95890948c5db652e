"""Memory beyond a room's window: search, upkeep and administration, based on the store.

- Search: `recall`, for one person `personal_recall`, for those in a room `room_audience`;
  `indexer` makes the embeddings, `access_log` counts what was found and quoted.
- Upkeep: `upkeep` does a session's background work. It takes over `outside_changes`, extracts facts about people
  (`fact_extraction`, which `people` keeps), stores what models were sent, and moves old segments (`tier_checks`).
  `retention` deletes what is old.
- For people: `session_reader` and `personal_recall` read what `bot.readers` lets somebody read, `digests`, `absence`
  and `transcript_files` show it, `personal_data` shows what is kept of somebody, and `person_forgetting` forgets it.
- For operators: `admin` serves `roomtone memory`; `explain` shows the prompt of a reply; `transcript` and
  `replay` run a transcript through the memory.
"""
