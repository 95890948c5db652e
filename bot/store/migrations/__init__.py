"""The steps that make the database and bring an older one up to date, run by Alembic.

`upgrade` runs them. `versions` has one module for each step. A shipped step is frozen: never edit it, add a new one. No
step leads back: whoever needs the older state restores a backup.

The first 13 steps were made before there was Alembic, and their SQL is SQLite's. PostgreSQL begins after them.
"""
