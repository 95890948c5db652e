"""The tools that a language model may call while it answers. `toolbox` is the entry point.

`tool` describes one tool; `permission` decides on whose behalf it runs, `schema` checks arguments, `exchanges` keeps
recent calls in the prompt, `running_effects` lets calls end whose reply was cancelled. Built-in tools: `memory`,
`attachments`, `links`, `screen`.
"""
