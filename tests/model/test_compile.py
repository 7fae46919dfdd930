"""A compiled forward pass is one graph, in which neither ``say`` nor the checks of inputs leave a trace."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A process of its own: the shape checks of this test run would cut the graph.
COMPILED = """
import sys
import torch
from glassformer.model import (
    AttentionConfig, Decoder, DecoderConfig, DropoutConfig, FeedForwardConfig, LayerConfig, PositionConfig,
)

blocks = int(sys.argv[1])
attention, ffn = AttentionConfig(heads=2, d_k=2, d_v=2, kv_heads=1), FeedForwardConfig(d_ff=4)
near = attention.model_copy(update={"window": 2, "qk_norm": True})
dropout = {"alike": DropoutConfig(), "alternating": DropoutConfig(embedding=0.3, attention=0.3, residual=0.3)}
tokens, targets = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]]), torch.ones((2, 4), dtype=torch.int64)
segments = {"one text": None, "packed": torch.tensor([[0, 0, 1, 1], [5, 6, 6, 6]])}
layers = {"alike": [attention], "alternating": [attention, near]}

for kind, cycle in layers.items():
    parts = tuple(LayerConfig(attention=cycle[k % len(cycle)], ffn=ffn) for k in range(blocks))
    config = DecoderConfig(vocab_size=5, context=4, d=4, layers=parts, position=PositionConfig(kind="rope"),
                           dropout=dropout[kind])
    model = Decoder(config)
    for rows, numbers in segments.items():
        graphs = []
        def count(graph, example):
            graphs.append(graph)
            return graph
        torch.compiler.reset()
        compiled = torch.compile(model, backend=count, fullgraph=True)
        gradients = []
        for run in (model, compiled):
            model.zero_grad()
            torch.manual_seed(0)
            loss = run(tokens, targets, segments=numbers).loss
            loss.backward()
            gradients.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
        for eager, traced in zip(*gradients):
            torch.testing.assert_close(traced, eager)
        calls = [str(node.target) for node in graphs[0].graph.nodes]
        assert not any("softmax" in call for call in calls), "something is computed that nobody asked for"
        assert sum("scaled_dot_product" in call for call in calls) == blocks
        print(kind, rows, len(graphs), sep=",")
"""
EXPECTED = ["alike,one text,1", "alike,packed,1", "alternating,one text,1", "alternating,packed,1"]


@pytest.mark.parametrize("blocks", [2, pytest.param(24, marks=pytest.mark.full)])
def test_a_model_compiles_to_one_graph_and_has_the_same_gradients(blocks: int) -> None:
    command = [sys.executable, "-c", COMPILED, str(blocks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == EXPECTED
