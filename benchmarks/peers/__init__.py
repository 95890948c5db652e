"""Other libraries to compare with, each run in its own environment and process."""
