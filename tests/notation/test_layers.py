"""Names within a layer: which of several quantities of one name is meant, and what does not fit is refused."""

from __future__ import annotations

import pytest

from glassformer.errors import UserError

from .test_program import twins


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("name", ["W", "ffn.W", "layers.{}.ffn.W"])
def test_a_layer_tells_quantities_of_one_name_apart(name: str, layer: int) -> None:
    assert twins().resolve(name.format(layer), layer) == f"layers.{layer}.ffn.W"
    assert twins().reference(name.format(layer) + ".grad[1,0]", layer)[0] == f"layers.{layer}.ffn.W"


@pytest.mark.parametrize(
    ("name", "layer", "fact", "advice"),
    [
        ("W", 2, "There is no layer 2.", "Use 0 to 1."),
        ("W", -1, "There is no layer -1.", "counted from 0, and there are 2"),
        ("layers.1.ffn.W", 0, '"layers.1.ffn.W" is not in layer 0.', "Leave the layer out."),
        ("X", 0, '"X" is not in layer 0.', "It is in.X."),
        ("final", 0, '"final" is not in layer 0.', "It is layers.1.ffn.B."),
        ("w", 0, 'There is no quantity "w".', 'Did you mean "W"?'),
    ],
)
def test_a_layer_that_does_not_fit_is_refused(name: str, layer: int, fact: str, advice: str) -> None:
    with pytest.raises(UserError) as refusal:
        twins().resolve(name, layer)
    assert fact in refusal.value.fact
    assert advice in str(refusal.value)
