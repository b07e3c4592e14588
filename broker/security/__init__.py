"""Security of the listeners: TLS, SASL and the credentials."""
