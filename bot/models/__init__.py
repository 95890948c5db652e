"""The model files that Roomtone uses. `directory.ModelDirectory` is the entry point.

`catalogue` lists the models (`entry`), `sources` downloads files, `directory` checks and installs them, and brings a
small language model into the form that the recogniser's engine runs (`gguf_conversion`). `voices`
lists the voices that a server may choose; `installing` and `loaded_voices` bring one into the running bot. Models are
loaded in `voice`, `bot.llm` and `bot.embedding`, except for the voices.
"""
