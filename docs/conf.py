"""How Sphinx builds the site: `make docs`, into build/docs, without the network."""

import gc

gc.disable()  # a build ends with its process; a fifth of its time went into garbage

project = "Kafka disaster recovery"
extensions = ["myst_parser"]
exclude_patterns = ["generate"]
nitpicky = True
myst_heading_anchors = 4
highlight_language = "text"
smartquotes = False  # it would make a dash of the two before an option

html_theme = "furo"
html_title = project
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
