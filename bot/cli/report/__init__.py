"""`roomtone report`: one file for an issue. `command.command` is the entry point.

`allowed` has what of the log, the settings and the findings of doctor may stand in it, `log_extract` what the log of
the last hours sums up to.
"""
