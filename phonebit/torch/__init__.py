"""PyTorch modules that run on PhoneBit: ``phonebit.accelerate``.

``import phonebit.torch.operator`` makes ``torch.ops.phonebit.forward`` known, which a program that
was exported with such a module needs before ``torch.export.load``.
"""
