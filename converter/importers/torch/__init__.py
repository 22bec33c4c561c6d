"""Imports PyTorch networks, operator by operator, from programs that ``torch.export`` writes."""
