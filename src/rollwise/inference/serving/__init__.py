"""A head in a server: export, vLLM, streams of an endpoint."""
