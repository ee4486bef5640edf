"""Files as texts: each format gives its texts and writes translations back into the layout. No Flask, no model."""
