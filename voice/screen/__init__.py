"""Shared screens: who may share, which pictures are valid, what changed, which text they show, and which notes are
taken.
"""
