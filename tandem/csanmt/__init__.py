"""The CSANMT translation model in PyTorch; importing it registers the model with transformers."""

from tandem.csanmt.registration import register

register()
