"""Tickets and what came of them: outcomes, evidence, and the book that joins the two."""
