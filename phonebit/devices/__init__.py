"""The processors that execute networks, and what is kept for each: kernels, tuning."""
