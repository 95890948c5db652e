"""Measures how much of a long conversation Roomtone and other systems remember."""
