"""Parts that models are built of: recurrent and Transformer layers, embeddings, losses, dropout."""
