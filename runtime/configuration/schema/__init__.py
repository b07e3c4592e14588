"""What the file may hold: `every_key` asks the reader for all, `json_schema` tells editors."""
