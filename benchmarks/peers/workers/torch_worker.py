"""PyTorch: a frozen TorchScript program, fused by its oneDNN Graph; much faster than eager mode."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.workers.protocol import Array, Engine, Task, serve


def load(task: Task) -> Engine:
    """The network of a TorchScript file."""
    import torch

    torch.set_num_threads(task.threads)
    torch.jit.enable_onednn_fusion(True)
    module = torch.jit.load(task.model)
    planes = torch.from_numpy(task.read_planes())

    def forward() -> Array:
        with torch.inference_mode():
            result: Array = module(planes).numpy()
        return result

    return Engine(
        forward=forward,
        version=torch.__version__,
        package=Path(torch.__file__).parent,
        channels_first=True,
    )


if __name__ == "__main__":
    serve(load)
