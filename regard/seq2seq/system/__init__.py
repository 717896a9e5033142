"""The operating system: safe files, escaping for terminals, memory size."""
