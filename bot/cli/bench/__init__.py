"""`roomtone bench`: measures Roomtone.

`commands` has the group and its commands, runs a benchmark and shows and writes its report.
"""
