"""What a site remembers of its logs from night to night, so that only what is new is read again.

`links` are a log's ranges without gaps, `rows` their form on disk, `remembered` what all nights say
together, `belief` when that is taken for what the log holds now, `epochs` asks the brokers for it,
`taking` plans and judges one night, `store` keeps it through Spark.
"""
