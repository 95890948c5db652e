"""The budget layer: keeps every model call within its token limit.

`estimator` counts tokens. `trim` leaves out the least important messages, and `eviction_note` says so. `tool_outputs`
and `files` shorten old tool outputs, of `messages` that belong together. `summarize` summarises turns that were left
out. `prompt` applies these steps to a model call.
"""
