"""The log of a process: JSON lines in a rotating file, and a shorter form on the terminal.

Start with `output`, which a command enters once: it makes lines of events, out of which `redaction` takes secrets and
what people said, and `log_file` writes them. `reader` reads the files while they are written; `removal` takes lines out
of them.
"""
