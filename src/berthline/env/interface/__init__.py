"""What Gymnasium asks of environments: bounds of spaces, attributes of batches."""
