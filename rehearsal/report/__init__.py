"""The report of a run: `report` has its values and writes JSON; `terminal` shows it while it plays and afterwards."""
