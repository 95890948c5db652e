"""The log of a process: JSON lines in a rotating file, and a shorter form on the terminal.

Start with `output`, which a command enters once. `redaction` takes secrets and what people said out of each event.
`reader` reads the files while they are written; `files` removes lines from them, and `retention` does so where nothing
else keeps the retention time. `bot.shared_log` collects the logs of several processes.
"""
