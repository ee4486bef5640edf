"""Tandem: CSANMT translation and GTE embeddings, batched together on one device."""

__version__ = "0.1.0"
