"""The model files that Roomtone uses. `directory.ModelDirectory` is the entry point.

`catalogue` lists the models, `sources` downloads files, `directory` checks and installs them. Models are loaded
elsewhere, in `voice`, `bot.llm` and `bot.embedding`.
"""
