"""Builds the running bot's parts from the settings; `bot.app` composes them.

`services` opens the services that rooms share. `speech_models` loads the models for hearing and speaking. `memory`,
`summariser`, `screens` and `tools` build the parts of those names. `settings` lists the settings sections.
"""
