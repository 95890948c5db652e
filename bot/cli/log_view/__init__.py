"""`roomtone tail`: shows the log. The entry point is `tail.command`.

`bot.logs.reader` reads lines from a rotating log, `events` formats one event and sums up each
session.
"""
