"""Reading prompts with a policy, without generating anything."""
