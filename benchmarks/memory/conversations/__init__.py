"""The conversations that systems are to remember, with the facts and questions in them.

`synthetic_evenings` generates them, `written` reads those of this project, and `transcripts` those of a user.
"""
