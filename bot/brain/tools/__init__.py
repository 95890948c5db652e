"""The tools that a language model may call while it answers. `toolbox` is the entry point.

`tool` describes one tool, `permission` says on whose behalf it runs, `running` runs one call, and `frozen_calls` keeps
the calls that wait until the person who asked has pressed a button. `schema` checks arguments, `exchanges` keeps recent
calls in the prompt. Built-in tools: `memory`, `attachments`, `links`, `screen`, `be_quiet`.
"""
