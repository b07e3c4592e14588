"""The six dashboards, typed: each module has one, `python -m deploy.grafana.source` writes them.

`make docs` writes deploy/grafana/dashboards anew, and a test holds the files equal to this source.
"""
