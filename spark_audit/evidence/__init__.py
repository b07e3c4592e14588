"""What a site remembers of its logs from night to night, so that only what is new is read again.

`links` are a log's ranges without gaps, `chain` many of them in columns, `rows` their form on disk,
`notes` what a table of these holds, `remembered` what all nights say together, `belief` when that
is taken for what the log holds now, `epochs` asks the brokers for it, `folding` makes one range for
an audit of what both sites remember alike, `taking` plans and judges one night, `store` keeps it
through Spark.
"""
