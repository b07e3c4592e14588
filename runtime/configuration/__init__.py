"""The one YAML file: its sections as values, and what a running flow differs from it in.

Each `*_section` reads one section. A new key is a field there, a line in its `MEANINGS`, and `make
docs`.
"""
