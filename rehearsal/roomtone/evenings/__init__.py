"""Plays simulated evenings: people, faults and crashes by chance, in the real room and in virtual time.

A seed makes a plan (`plan`). `player` plays it, `world` keeps what is true of it, and `invariants` compares the bot with
that after each step. The same seed plays alike everywhere.
"""
