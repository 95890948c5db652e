"""Shared screens: who may share, what a picture must be, whether it changed, what it reads, what is noted."""
