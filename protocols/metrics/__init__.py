"""Metrics of embeddings: retrieval, clustering and structure."""
