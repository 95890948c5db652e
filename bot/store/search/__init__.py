"""The search index of the database: what of it is findable, and how it is found.

- Written: `passages` makes them of turns, notes, segments and facts; `vector_store` keeps their embeddings. `tags` are
  what passages are filtered by.
- Read: `search` finds passages by words and by embeddings, which `vector_store` compares; `passages` reads what they
  stand for.
"""
