"""`roomtone bench reply`: when the bot replies, how fast, and how steadily it sends sound.

`bench` runs the parts: `latency`, `interruption` and `concurrent_speakers` in a real `room`, `pacing` in `many_rooms`,
`decisions` on the scripted `dialogues`, `pauses` and `crowd`. `targets` checks the
figures.
"""
