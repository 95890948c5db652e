"""Builds the running bot's parts from the settings; `bot.app` composes them.

`services` opens what rooms share, `speech_models` the models for hearing and speaking, `memory`, `summariser`,
`screens` and `tools` the rest. `settings` lists the settings sections the bot needs.
"""
