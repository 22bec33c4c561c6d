"""A detector of garments in cluttered scenes: YOLOv2-Tiny, binary; README.md has the results."""
