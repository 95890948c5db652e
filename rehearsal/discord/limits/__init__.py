"""What Discord refuses: texts, buttons and commands that are too long or too many, and requests that come too often.

The modules only decide; the REST API answers with Discord's error.
"""
