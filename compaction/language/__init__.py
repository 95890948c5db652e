"""Words and sentences: `text` splits them, `terms` makes search terms, `languages` knows each language, `statements`
tells what is about the same thing.
"""
