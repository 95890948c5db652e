"""Benchmarks: `roomtone bench NAME`.

Subpackages: `memory` (what summaries keep), `reply` (latency, interruptions, pacing), `screen` (reading shared
screens), `peers` (other libraries in their own environments). Start at `registry`. Each benchmark has
`bench.run(options, progress)`, which returns a `report.BenchmarkReport`. `document` writes stored results into the
docs.
"""
