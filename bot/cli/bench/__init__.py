"""`roomtone bench`: measures Roomtone.

`commands` has the group and its commands. `measuring` runs a benchmark and shows and writes its report.
"""
