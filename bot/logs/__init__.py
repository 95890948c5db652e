"""The log of a process: JSON lines in a rotating file, and a shorter form on the terminal.

Start with `output`, which a command enters once: it makes lines of events, out of which `redaction` takes secrets and
what people said, and `log_file` writes them and takes lines out. `reader` reads the files while they are written.
"""
