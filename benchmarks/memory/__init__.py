"""`roomtone bench memory`: what the memory keeps without a model, and what search finds.

`bench` runs `extractive`, `prompt_quotes` and `search_speed`, over `conversations` and a `roomtone_search`.
"""
