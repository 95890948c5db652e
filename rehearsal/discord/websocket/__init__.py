"""The websockets of both gateways: each has an ordered outbox (`connection`).

Clients without heartbeats are cut off (`heartbeats`).
"""
