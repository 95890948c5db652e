"""Embedders that run inside the process: texts become vectors without any service (`compaction.ports.Embedder`)."""
