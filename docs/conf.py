"""How Sphinx builds the site: `make docs`, into build/docs, without the network."""

project = "Kafka disaster recovery"
extensions = ["myst_parser"]
exclude_patterns = ["generate"]
nitpicky = True
myst_heading_anchors = 4

html_theme = "furo"
html_title = project
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
