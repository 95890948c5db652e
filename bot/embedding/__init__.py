"""Embedders: turn texts into vectors for memory search (`compaction.ports.Embedder`).

The entry point `factory.open_embedder` opens an endpoint or the local model (`sentence_encoder`).
"""
