"""Models: `model(batch)` is the loss."""
