"""Balls in boxes, moved by tools."""
