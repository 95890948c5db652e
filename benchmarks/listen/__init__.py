"""`roomtone bench listen`: whether the bot takes pauses for ends, answers what is for it, and is silent otherwise.

`bench` runs the parts: `endpointing` over recordings, and `decisions` on the scripted `dialogues` and over transcripts
that the user supplies.
"""
