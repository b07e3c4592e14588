"""The one YAML file: its sections as values, and what a running flow differs from it in."""
