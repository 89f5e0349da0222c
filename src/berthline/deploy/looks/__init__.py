"""From looks at a system to snapshots: who is who, what contradicts itself, what is load."""
