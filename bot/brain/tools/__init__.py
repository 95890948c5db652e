"""The tools that a language model may call while it answers. `toolbox` is the way in.

`tool` describes one; `permission` decides on whose behalf it runs, `schema` checks arguments, `untrusted_text` marks
output as data, `exchanges` keeps recent calls in the prompt. Built-in tools: `memory`, `attachments`, `links`,
`screen`.
"""
