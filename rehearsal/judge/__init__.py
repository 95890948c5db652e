"""Judges a run by its record.

`report_builder` is the way in. `matching`: which utterance belongs to which line. `expectations`: judges each
expectation. `written_evening`: judges and reports a written evening.
"""
