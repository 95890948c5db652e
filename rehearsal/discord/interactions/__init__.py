"""Slash commands and buttons: from what a person types or presses to the bot's answers.

`interactions` is the entry point. `commands` builds the event, and `result` collects the answers.
"""
