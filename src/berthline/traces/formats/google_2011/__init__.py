"""Google's cluster trace of 2011 (clusterdata-2011-2): tables, events, jobs."""
