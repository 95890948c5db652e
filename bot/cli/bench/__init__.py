"""`roomtone bench`: measures Roomtone beside other programs.

`commands` has the group and its smaller commands, `memory` the one with most options. `measuring` runs a benchmark and
shows and writes its report.
"""
