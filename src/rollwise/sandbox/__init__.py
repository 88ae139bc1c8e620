"""Runs untrusted code with no network, no files of the machine, and limits on time, memory, processes and output."""

from rollwise.sandbox.functions import Reply, SandboxedFunction
from rollwise.sandbox.limits import Limits
from rollwise.sandbox.probe import check_sandbox

__all__ = ["Limits", "Reply", "SandboxedFunction", "check_sandbox"]
