"""The memory benchmark: `bench` runs it, `measurements` measure, over `conversations` and a `search`."""
