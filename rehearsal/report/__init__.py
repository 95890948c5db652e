"""The report of a run. `report` has its values and writes JSON. `terminal` shows it during the run and at the end."""
