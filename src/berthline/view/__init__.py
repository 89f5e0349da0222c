"""What an instant of a run looks like: as a record, as text and as a picture."""
