"""One file per API key; `table` says which are served."""
