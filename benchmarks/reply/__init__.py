"""Measures when the bot replies, how fast, and how steadily it sends sound."""
