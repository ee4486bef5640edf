"""The nouns everything else is made of: no torch, no Flask."""
