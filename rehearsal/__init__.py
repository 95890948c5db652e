"""Plays a scenario with the real bot in a local Discord, and judges the run.

`rehearse` is the way in. `script`: what a person writes. `runner`: plays it. `judge`: judges the run. `report`: the
report and the terminal. `discord`: the local Discord. `people`: scripted people with their own voice client. `servers`:
local model servers. `scenarios`: the bundled scenarios. `words`: comparison of texts. `errors`.
"""
