"""The files that a person writes: scenarios and their expectations.

`scenario_file` reads a `scenario` with its `expectations`, and words the mistakes in it.
"""
