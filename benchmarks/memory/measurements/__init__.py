"""The parts of a run, each a measurement with its figures for the report.

`race` plays the conversations of `conversation_sets` to each system (`evaluation`), `cases` short talks. The others
measure Roomtone alone.
"""
