"""What each rank of a pipeline-parallel model is fed: embeddings on the first one, deepstack where it is needed."""

from typing import Protocol


class PipelineRanks(Protocol):
    """What each rank of a pipeline-parallel model is fed: embeddings on the first one, deepstack where it is needed."""
