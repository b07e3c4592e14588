"""The figures as people read them: `document` and `charts` are made of results, `publish` writes them."""
