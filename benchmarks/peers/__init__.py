"""Other libraries, each run in its own environment and process."""
