"""How long a test waits for what has to come from a socket, a thread, another process or a browser."""

# Nothing takes this long, not even on a busy machine. A test that hangs fails with what it waited for, before pytest's
# own limit (pyproject.toml) ends it with a stack.
PATIENCE_S = 300.0
