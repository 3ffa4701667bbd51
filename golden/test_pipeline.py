"""The ids of prompts with photos, as transformers' processor expands them."""

from conformance.cases import Exact
from golden.vectors import vectors


@vectors("PIPELINE-08")
def test_ids_of_a_prompt_with_photos(given: str, expected: list[int]) -> Exact:
    return Exact(given, expected)
