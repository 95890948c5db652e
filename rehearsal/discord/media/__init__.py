"""The media server: UDP packets from each member to all others, encrypted for each, over a network with faults.

`forwarder` is the entry point.
"""
