"""Keys and certificates of Java programs: `forms` knows PKCS12 and JKS, `store` holds a file.

What a file holds is told as PEM, which both our client and librdkafka take.
"""
