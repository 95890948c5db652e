"""Rehearses Roomtone: the only part of the package that knows the bot. `roomtone rehearse` starts it.

`playing` plays a scenario. `companion` runs the bot in this process. `serve` keeps the local Discord up for other
clients and, through `microphone`, for a person. `speech_engines` are the models of a scenario's servers. `written`
plays scenarios without sound. `trial` keeps what a rehearsal has made, `recording` its sound.
"""
