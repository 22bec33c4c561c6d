"""A loaded network and the arrays that go in and come out."""

from phonebit.network.network import Network

__all__ = ["Network"]
