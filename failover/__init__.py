"""Promotion of a site as a journalled state machine, and the client that follows the active one."""
