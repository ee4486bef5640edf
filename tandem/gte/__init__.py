"""The embedding model, usable by itself: tokenizer, encoder, pooling, checkpoint, engine."""
