"""tauasync: a high-throughput async batch evaluator with caching for the tau-bench family."""

__version__ = "0.1.0"
