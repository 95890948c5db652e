"""Judges of a text that stands for a conversation: which facts it states, of whom, and what it invents.

`fact_judge` judges planted facts, `label_judge` labelled ones: by `readings`, else by words (`statement_judge`).
"""
