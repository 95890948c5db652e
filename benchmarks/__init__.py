"""Benchmarks: `roomtone bench NAME`.

Start at `registry`, which lists the benchmarks. Each is a folder with `bench.run(options, progress)`, which collects a
run in a `measuring.Measuring` and returns a `report.BenchmarkReport`. `document` writes kept results into the docs.
"""
