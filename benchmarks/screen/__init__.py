"""Measures how well the bot watches shared screens: which changes and text it notices, how fast, and the cost of an
hour.
"""
