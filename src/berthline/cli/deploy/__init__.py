"""`berthline deploy`: a controller beside a system, and its journal."""
