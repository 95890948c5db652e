"""`roomtone bench memory`: what the memory keeps, and what search finds.

`bench` runs the parts of `summaries` and `search`, over `conversations` and a `roomtone_search`.
"""
