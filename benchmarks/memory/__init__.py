"""`roomtone bench memory`: what the memory keeps, and what search finds.

`bench` runs `recorded_answers`, `extractive`, `prompt_quotes`, `other_languages` and `search_speed`, over
`conversations` and a `roomtone_search`.
"""
