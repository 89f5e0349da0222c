"""`berthline report`: the page of a run, figures for a paper, and training curves."""
