"""The voice gateway: clients enter a voice channel and agree on its encryption.

`gateway` handles their messages. `voice_room` has the sessions of one channel and does what the delivery service
decides.
"""
