"""The figures as people read them.

`document` and `charts` are made of results, and `publish` writes both beside each other.
"""
