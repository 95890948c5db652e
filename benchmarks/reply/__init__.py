"""`roomtone bench reply`: how soon the bot answers, and how soon it falls silent.

`bench` runs the parts of `latency` and `interruption`, each in a real room (`measured_room`).
"""
