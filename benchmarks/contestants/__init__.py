"""Who takes part: one file a side, one function a case; each returns what is to be called."""
