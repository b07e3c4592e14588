"""What people are shown of both sites: one look, the status, reports, and what differs."""
