"""The kind of the passages of facts (`fact_passages`).

They are only a way to a turn, so it is no `PassageKind` and nothing else sees it.
"""

KIND = "fact"
