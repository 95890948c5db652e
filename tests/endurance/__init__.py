"""Runs for hours: kills, random schedules, days without a disk or a database, and a room that lasts."""
