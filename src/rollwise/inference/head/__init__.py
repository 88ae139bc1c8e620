"""The success head: spec, fit, read, verdict, recalibration."""
