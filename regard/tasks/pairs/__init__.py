"""What tasks that learn from pairs of text have in common: files, vocabularies, a run's folder."""
