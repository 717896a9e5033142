"""Parts that models are built of: recurrent and Transformer layers, dropout, embeddings."""
