"""Networks and measurements as pages for a browser."""
