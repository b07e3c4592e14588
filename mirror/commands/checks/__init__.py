"""What `mirror check` looks at, one question each; `mirror.commands.check` asks them in order."""
