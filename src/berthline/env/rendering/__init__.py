"""What environments look like."""
