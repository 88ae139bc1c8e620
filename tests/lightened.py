"""Imported by a process of tests that is not pytest's own."""

from lighter import lighten, without_figures

lighten()
without_figures()
