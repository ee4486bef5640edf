"""What both models are made of: precisions, linear layers, attention, normalisation."""
