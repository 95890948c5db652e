"""The schema's revisions, run by Alembic. `upgrade` runs them; `versions` has one module for each.

Until the first release there is one revision, made from `bot.store.tables`: change the tables there. No revision leads
back: whoever needs the older state restores a backup.
"""
