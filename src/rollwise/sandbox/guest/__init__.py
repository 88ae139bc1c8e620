"""Runs inside the sandbox: the standard library alone, nothing of rollwise, so that it starts quickly.

The host mounts this folder as the package `_rollwise_guest`, so its modules import each other relatively.
"""
