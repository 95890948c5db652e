"""The media server: UDP packets from each member to all others, encrypted for each, over a network with faults.

`forwarder` is the entry point. `network` sets loss and delay, `stream_faults` and `header_replay` change packets, and
`delayed_packets` keeps their order.
"""
