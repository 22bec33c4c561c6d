"""Co-execution: plans for GPU and CPU together, measured in a confined testbed."""
