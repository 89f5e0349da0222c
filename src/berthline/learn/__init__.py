"""Learning: from an environment, or from the simulator itself, to a policy.

- `algorithms/`: PPO, D3QN, discrete SAC, Meta-DQN, behaviour cloning; one file each
- `networks/`: from observations to scores of actions
- `training/`: the loop around an algorithm: environments, validation, checkpoints
- `tuning/`: search for the parameters of a scheduler; does not need torch
"""
