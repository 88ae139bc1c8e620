"""The rewards that a user names: built in, one's own, or of a package; called here or by a pool of processes."""
