"""Hostile input with fixed seeds. `test_attacks` runs a few rounds in CI, `make fuzz MINUTES=10` as many as fit."""
