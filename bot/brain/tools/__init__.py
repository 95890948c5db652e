"""The tools that a language model may call while it answers. `toolbox` is the entry point.

`tool` describes one tool, says on whose behalf it runs, checks arguments and runs one call; `frozen_calls` keeps the
calls that wait for the press of the person who asked. Our own tools: `memory` and `built_in`.
"""
