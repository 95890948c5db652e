"""Shared screens. Start at `port`, the interface of a reader of pictures.

- Admission: `share_link` signs and checks links, `token_bucket` limits how many pictures come, `frame` checks them.
- Change: `frame_decoder` decodes pictures in another process (`worker_process`, `picture_worker`), `frame_diff` finds
  what changed, and `note_schedule` decides when to read it.
- Reading: `ocr` reads text without a language model, `ocr_text` finds what is new in it, `notes` takes the notes.
"""
