"""Shared screens. Start at `port`, the interface of a reader of pictures.

- Admission: `share_link` gives and redeems links, `frame` checks the pictures that come.
- Change: `frame_decoder` decodes pictures in another process (`worker_process`, `picture_worker`), `frame_diff` finds
  what changed.
- Reading: `ocr` reads text without a language model, `ocr_text` finds what is new in it, `notes` decides
  when to read and takes the notes.
"""
