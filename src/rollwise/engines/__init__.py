"""A curriculum inside distributed engines: a service for many workers, and adapters to engines. Imports no engine."""
