"""Which variables of both sides belong together: by name, by a map by hand, or by a derived one."""
