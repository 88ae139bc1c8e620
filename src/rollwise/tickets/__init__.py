"""Tickets, the outcomes of their rollouts, and the evidence in them."""

from rollwise.tickets.contrast import Contrast
from rollwise.tickets.evidence import MIXED_TOLERANCE, Evidence, by_size
from rollwise.tickets.ledger import Ledger
from rollwise.tickets.outcome import LearnsFrom, Outcome, RewardSpec
from rollwise.tickets.ticket import Purpose, Ticket, TicketStatus
from rollwise.tickets.told import Learner, Refused, TellReport

__all__ = [
    "MIXED_TOLERANCE",
    "Contrast",
    "Evidence",
    "Learner",
    "LearnsFrom",
    "Ledger",
    "Outcome",
    "Purpose",
    "Refused",
    "RewardSpec",
    "TellReport",
    "Ticket",
    "TicketStatus",
    "by_size",
]
