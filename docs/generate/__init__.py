"""The reference pages of the documentation, made of the code that they are about.

`python -m docs.generate` writes them; `tests/docs` holds them equal to what it would write.
"""
