"""The toolkit: data, encoders, decoders, models, training, decoding, alignment and metrics."""
