"""Shared screens: who shares, what is read from the pictures, and the notes for session memory.

`screens` creates links and admits share pages; `screen_room` has the shares of one room,
`sharer` one person in it and what session memory stores of their share, `share` which of their pictures are taken and
what is read of them. `readers` asks OCR or a vision model, `commentary` chooses when to remark, `messages` has the
sentences.
"""
