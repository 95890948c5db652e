"""The guild: its channels, people and bots, who is where, and all of it as Discord's JSON objects.

`spec` has what a test declares, `state` what changes. `identity` and `permissions` say who gets and may do what.
"""
