"""The shape of every program: its commands, their parser, exit statuses and messages."""
