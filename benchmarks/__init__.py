"""Benchmarks: `roomtone bench NAME`.

Rooms: `memory` (what summaries keep), `reply` (latency, interruptions, pacing), `screen` (reading shared screens),
`peers` (other libraries in their own environments). The way in is `registry`; each benchmark has `bench.run(options,
progress)`, which returns a `report.BenchmarkReport`. `document` writes kept results into the docs.
"""
