"""A training run written down: its folder, and tables and reports for trackers."""
