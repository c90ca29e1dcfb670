"""Metrics of embeddings: retrieval, clustering, structure and covering."""
