"""Reads HDF5, the files of Keras: groups, attributes and arrays of numbers, in Python alone.

A file may come from anybody, and the HDF5 library does not survive every damaged one. What Keras
never writes is an error here: links to other files, compound types, virtual and external arrays.

Source: HDF5 File Format Specification 3.0.
"""

from phonebit.converter.importers.hdf5.objects import Attribute, Dataset, Group, open_hdf5
from phonebit.converter.importers.hdf5.storage import DamagedError, is_hdf5

__all__ = ["Attribute", "DamagedError", "Dataset", "Group", "is_hdf5", "open_hdf5"]
