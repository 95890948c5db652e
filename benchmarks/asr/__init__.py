"""Measures the speech recogniser: word errors, CPU time and delay, alone, through Opus with loss, and in company."""
