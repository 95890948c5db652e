"""The model files that Roomtone uses. `directory.ModelDirectory` is the entry point.

`catalogue` lists the models (`entry`), `sources` downloads files, `directory` checks and installs them. `voices` lists
the voices that a server may choose; `loaded_voices` brings one into the running bot. Models are loaded
in `voice`, `bot.llm` and `bot.embedding`, except for the voices.
"""
