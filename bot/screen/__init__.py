"""Watching shared screens: who shares, what is read of it, and how that becomes part of a room's memory."""
