"""The schema's revisions, run by Alembic. `upgrade` runs them; `versions` has one module for each.

A change of a table, an index or a trigger is a new module in `versions`. No module changes once it is released, or
older databases would differ from new ones. `bot.store.tables` gets the same change of a table. No revision leads back:
whoever needs the older state restores a backup.
"""
