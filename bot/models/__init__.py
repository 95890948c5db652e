"""The model files Roomtone can use: what they are, where they come from, and whether they are here.

`catalogue` says what exists, `sources` fetches files, `shelf` is the directory they live in. Nothing here
loads a model; that is the business of `voice` and `bot.llm`.
"""
