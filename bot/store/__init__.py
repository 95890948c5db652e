"""What rooms remember, on disk: sessions, turns, notes and segments in one embedded database.

`database` opens and guards it, `schema` is its shape, `turns` is memory's port on it, `sessions` knows which
session is whose, `failures` turns a driver's errors into plain sentences.
"""
