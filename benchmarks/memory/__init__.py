"""Measures how much of a long conversation Roomtone and other systems remember.

`bench` runs `measurements`: each plays `conversations` to `systems`, may ask their `search`, and has the texts judged
by `judges`. `targets` checks the figures.

`record` keeps a model's answers for later runs, and `blind` shows two texts to a person who does not know whose they
are. The data is in `folders`.
"""
