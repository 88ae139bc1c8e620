"""AUC of several heads on several folders of rollouts."""
