"""The nightly proof: both logs read by PySpark and compared record by record."""
