"""The budget layer: keeps every model call within its token limit.

`estimator` counts tokens. `trim` leaves out the least important messages, and `eviction_note` says so. `tool_outputs`
shortens old tool outputs, of `messages` that belong together. `prompt` applies
these steps to a model call, and quotes the turns that were left out.
"""
