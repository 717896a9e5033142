"""What every part of attention stands on: axes, records, numerics, non-finite values."""
