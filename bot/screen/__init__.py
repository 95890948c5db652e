"""Shared screens: who shares, what is read from the pictures, and the notes that session memory gets.

`screens` gives out links and lets share pages in; `room` has the shares of one room, `share` one of them. `readers`
picks OCR or a vision model, `commentary` the moment for a remark, `messages` the sentences. `watch_service` serves the
/watch commands.
"""
