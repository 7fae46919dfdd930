"""The laws, one file each: what is run, and what must be true of it."""
