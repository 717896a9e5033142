"""The toolkit: data, encoders, decoders, training, decoding and reading over the library."""
