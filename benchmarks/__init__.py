"""Benchmarks: `roomtone bench NAME`.

Start at `registry`, which lists the benchmarks. Each is a folder with `bench.run(options, progress)`, a `Measuring` of
`measuring`, which returns a `report.BenchmarkReport`. `peers` runs other libraries in their own environments.
`document` writes stored results into the docs, a `result_section` for each, and `headlines` those of the README.
"""
