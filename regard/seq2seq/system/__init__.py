"""The machine beneath: files, escaping for terminals, what a run was computed on."""
