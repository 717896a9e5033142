"""The way in from a terminal: one file a verb. Verbs import what is heavy when they run."""
