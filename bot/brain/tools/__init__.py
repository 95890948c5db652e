"""The tools that a language model may call while it answers. `toolbox` is the entry point.

`tool` describes one tool; `permission` decides on whose behalf it runs, and `orders` whether somebody has ordered it,
by the clauses of their words (`order_clauses`, `order_words`). Where that is not certain, `proposals` has the bot ask
them. `schema` checks arguments, `exchanges` keeps recent calls in the prompt, `running_effects` lets calls end whose
reply was cancelled. Built-in tools: `memory`, `attachments`, `links`, `screen`.
"""
