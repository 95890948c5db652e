"""Words and sentences: `text` splits them, `terms` makes search terms, `languages` knows each language, `names` puts
misheard names right, `statements` tells what is about the same thing.
"""
