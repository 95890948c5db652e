"""Embedders: texts become vectors for memory search (`compaction.ports.Embedder`).

`factory.open_embedder`, the way in, opens an endpoint's or the local model (`minilm`), which runs in a thread
(`worker`).
"""
