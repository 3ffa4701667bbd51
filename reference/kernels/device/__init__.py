"""The kernels themselves, in Triton, and what launches them. Nothing here is imported before a tensor lies on a GPU.

With TRITON_INTERPRET=1 the same launchers take tensors on a CPU; the variable must be set before the first import.
"""
