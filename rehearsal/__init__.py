"""Plays a scenario with the real bot in a local Discord, and judges the run.

`roomtone.playing` is the entry point. The other packages and modules:

- `script` reads the files that a person writes.
- `runner` plays a scenario.
- `pytest_plugin` gives the local Discord and its people to the tests of any voice bot.
- `judge` judges the run.
- `report` holds the report and shows it on the terminal.
- `discord` is the local Discord.
- `people` are scripted people with their own voice client.
- `servers` are local model servers.
- `scenarios` are the bundled scenarios.
- `words` compares texts.
- `waiting` has ways to wait.
- `errors` has the error classes.
"""
