"""Finding again what has left the window: how a search is made and its answer put in order. Pure.

`terms` says which words count, `passage` what can be found and where to look, `recall` ranks it, `correction` tells
a value that holds from one that was replaced, `quotes` makes parts of a prompt. The index itself is a port.
"""
