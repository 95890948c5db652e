"""What people on Discord read, in their language.

English sentences are in the code; one TOML file for each other language translates them (CONTRIBUTING.md).
"""
