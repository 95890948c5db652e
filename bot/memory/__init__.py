"""Memory beyond a room's window: search, upkeep and administration, based on the store.

- Search: `recall`, for those in a room, and for one person `personal_recall`;
  `indexer` makes the embeddings, `access_log` counts what was found and quoted.
- Upkeep: `upkeep` does a session's background work. It takes over changes by others, extracts facts about people
  (which `people` keeps), stores what models were sent, and moves old segments (`tier_checks`).
  `retention` deletes what is old.
- For people: `session_views` and `personal_recall` read what `bot.viewers` lets somebody read, `digests` and
  `transcript_files` show it, `personal_data` shows what is kept of somebody and forgets it.
- For operators: `admin` serves `roomtone memory`; `explain` shows the prompt of a reply; `transcript` and
  `replay` run a transcript through the memory.
"""
