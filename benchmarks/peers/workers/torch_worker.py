"""PyTorch on the CPU: a frozen TorchScript program, fused by its oneDNN Graph."""

from __future__ import annotations

from benchmarks.peers.worker import Array, Engine, Forward, Task, planes


def load(task: Task) -> Engine:
    """The network of a TorchScript file; much faster than eager mode."""
    import torch

    torch.set_num_threads(task.threads)
    torch.jit.enable_onednn_fusion(True)
    module = torch.jit.freeze(torch.jit.load(task.model))

    def prepare(images: Array) -> Forward:
        x = torch.from_numpy(planes(images))

        def forward() -> Array:
            with torch.inference_mode():
                result: Array = module(x).numpy()
            return result

        return forward

    return Engine(prepare, torch.__version__, torch.__file__, True)
