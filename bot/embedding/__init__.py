"""Embedders: turn texts into vectors for memory search (`compaction.ports.Embedder`).

`factory.open_embedder`, the way in, opens an endpoint or the local model (`minilm`), which runs in a thread (`worker`).
"""
