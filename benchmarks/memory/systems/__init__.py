"""The compared systems: Roomtone's memory, a bare window, and other libraries, with the models that they ask.

`memory_system` has their interface, and `catalogue` lists them. `recorded_answers` replays what a model answered.
"""
