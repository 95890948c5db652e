"""The part of Discord's REST API that a voice bot uses.

Each request passes `gate` (limits and ordered faults), then a handler of `routes` or `channels`.
"""
