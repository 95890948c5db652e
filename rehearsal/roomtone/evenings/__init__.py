"""Plays simulated evenings: people, faults and crashes by chance, in the real room and in virtual time.

A seed makes a plan (`plan`). `player` plays it with a `crowd`. `world` keeps what is true of it and compares it with
what the bot does, and `invariants` with what it has stored. The same seed plays alike in each process (`evening`).
"""
