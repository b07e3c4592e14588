"""The controller: one broker that decides who leads which partition."""
