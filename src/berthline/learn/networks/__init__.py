"""Networks: from a flat observation to scores of actions."""
