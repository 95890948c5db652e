"""Judges a run by its record.

`report_builder` is the entry point. `matching` assigns utterances to lines. `expectations` judges each expectation.
"""
