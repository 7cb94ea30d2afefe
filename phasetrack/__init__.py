"""Tell exactly what a starting SGLang server is doing, from its log."""

__version__ = "0.1.0"
