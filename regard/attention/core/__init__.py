"""What every part of attention uses: axes, errors, validation, records, numerics, parameters."""
