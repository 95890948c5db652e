"""Summaries: makes a gist, facts and the summary of the whole session from each batch.

Callers use `port` (`Summariser`), its implementations `llm` and `extractive`, and `folded` (what the segments of a
session say together). `prompt` writes the request to a model, and `answer` reads what it says.
"""
