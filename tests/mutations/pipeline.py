"""Mutations of `pipeline`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "each picture is encoded by itself and has its own grid",
        "pipeline",
        'torch.tensor([item.read("image_grid_thw")])',
        'torch.tensor([item.read("image_grid_thw")])[:, [0, 2, 1]]',
        "PIPELINE-01",
    ),
    Mutation("pictures have positions of their own", "pipeline", "request.items, layout", "(), layout", "PIPELINE-03"),
]
