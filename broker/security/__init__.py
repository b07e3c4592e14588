"""Who comes in, and over what: TLS, SASL and the credentials."""
