"""`roomtone bench reply`: how soon the bot answers, and how soon it falls silent.

`bench` runs the parts: `latency`, `interruption` and `concurrent_speakers`, each in a real room (`measured_room`).
"""
