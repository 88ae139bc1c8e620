"""Rolls out a data set's prompts with a policy and scores them, into a folder that goes on where it was killed.

What the preflight and adaptive inference have in common. Importing it is cheap; torch and transformers are imported
when a policy is loaded.
"""
