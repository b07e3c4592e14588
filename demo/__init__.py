"""The whole service on one machine: make run and make demo."""
