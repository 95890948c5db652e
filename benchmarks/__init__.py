"""Benchmarks: `roomtone bench NAME`.

Start at `registry`, which lists the benchmarks. Each is a folder with `bench.run(options, progress)`, a `Measuring` of
`measuring`, which returns a `report.BenchmarkReport`. `document` writes kept results into the docs.
"""
