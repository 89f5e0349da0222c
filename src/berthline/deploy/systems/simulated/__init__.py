"""The native simulator as a system: jobs arrive, start natively or by our actions, and end."""
