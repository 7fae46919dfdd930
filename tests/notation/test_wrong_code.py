"""One token of the forward pass changed, in a copy of the package: the replay law sees it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

# Runs the copy that it is given and prints what breaks the replay law, by key.
CHECK = """
import json, sys
from pathlib import Path
import torch
import glassformer
from decoders import CONFIGS, decoder_config, random_decoder, random_inputs
from glassformer.model import AttentionConfig, DropoutConfig, definitions
from glassformer.tracing.record import Sample, record
from glassformer.tracing.replay import replay

assert Path(glassformer.__file__).is_relative_to(sys.argv[1]), glassformer.__file__
torch.set_num_threads(1)
torch.manual_seed(0)
broken = {}
options = decoder_config(
    blocks=1,
    attention=AttentionConfig(heads=2, d_k=3, d_v=4, bias=True, qk_norm=True),
    dropout=DropoutConfig(embedding=0.2, attention=0.3, residual=0.25),
)
for config in (CONFIGS["everything"], CONFIGS["relu"], options):
    inputs = random_inputs(config)
    sample = Sample(inputs.tokens[0], inputs.targets[0], inputs.scored[0])
    program = definitions(config, sample.length, dropout=True)
    try:
        law = replay(program, (), record(random_decoder(config).train(), sample, program))
    except Exception as error:
        broken[type(error).__name__] = str(error)
    else:
        broken.update({key: multiple for key, multiple in law.violations().items()})
print(json.dumps(broken))
"""

# (file, what stands there once, what is written instead)
MUTATIONS = (
    ("attention.py", "math.sqrt(Q.shape[-1])", "math.sqrt(Q.shape[-2])"),
    ("attention.py", "/ math.sqrt(", "* math.sqrt("),
    ("attention.py", "masked_fill(~allowed", "masked_fill(allowed"),
    ("attention.py", "~allowed, -math.inf)", "~allowed, -math.pi)"),
    ("attention.py", "torch.softmax(S, -1)", "torch.softmax(S, -2)"),
    ("attention.py", "_project(M, self.W_K, self.b_K)", "_project(M, self.W_Q, self.b_K)"),
    ("attention.py", "_project(M, self.W_K, self.b_K)", "_project(M, self.W_K, self.b_Q)"),
    ("attention.py", "projected + bias[:, None, :]", "projected - bias[:, None, :]"),
    ("attention.py", "else O + self.b_O", "else O * self.b_O"),
    ("mask.py", "allowed = key <= row", "allowed = key >= row"),
    ("norm.py", "X.mean(-1)", "X.amax(-1)"),
    ("norm.py", "** 2).mean(-1)", "** 2).sum(-1)"),
    ("norm.py", "var + self.eps", "var - self.eps"),
    ("norm.py", "/ sd[..., None]", "/ var[..., None]"),
    ("norm.py", "xhat * self.gamma + self.beta", "xhat * self.gamma - self.beta"),
    ("activation.py", "say(GELU, functional.gelu(B)", "say(GELU, functional.silu(B)"),
    ("activation.py", "say(RELU, functional.relu(B)", "say(RELU, functional.elu(B)"),
    ("feedforward.py", "_affine(inside, self.W_2", "_affine(B, self.W_2"),
    ("feedforward.py", "else X @ W + bias", "else X @ W - bias"),
    ("block.py", "X + self.dropout1(", "Y + self.dropout1("),
    ("block.py", "self.attn(Y, Y,", "self.attn(Y, X,"),
    ("block.py", "self.norm2(R, say)", "self.norm2(X, say)"),
    ("block.py", "R + self.dropout2(", "X + self.dropout2("),
    ("embedding.py", "X + F.embedding(pos, self.P)", "X + F.embedding(t, self.P)"),
    ("embedding.py", "X + F.embedding(pos, self.P)", "X - F.embedding(pos, self.P)"),
    ("head.py", "else X @ U + self.b_U", "else X @ U - self.b_U"),
    ("head.py", "torch.softmax(logits, -1)", "torch.softmax(logits, -2)"),
    ("loss.py", "torch.logsumexp(logits, -1) - logit", "torch.logsumexp(logits, -1) + logit"),
    ("loss.py", "torch.logsumexp(logits, -1) - logit, 0.0)", "torch.logsumexp(logits, -1) - logit, 1.0)"),
    ("loss.py", "nll.sum() / count", "nll.mean() / count"),
    ("loss.py", "torch.where(scored, y, 0)", "torch.where(scored, 0, y)"),
    ("qk_norm.py", "(Q**2).mean(-1)", "(Q**2).sum(-1)"),
    ("qk_norm.py", "(K**2).mean(-1)", "(Q**2).mean(-1)"),
    ("qk_norm.py", "Q / rms_Q[..., None]", "Q / rms_K[..., None]"),
    ("qk_norm.py", "Khat * self.gamma_K", "Khat * self.gamma_Q"),
    ("attention.py", "Q, K = self.qk_norm(Q, K, say)", "Q, _ = self.qk_norm(Q, K, say)"),
    ("attention.py", "leave_out(A, DROPPED, rate, say, at) @ V", "(leave_out(A, DROPPED, rate, say, at) * 0 + A) @ V"),
    ("dropout.py", "torch.where(kept, X / (1 - rate), 0.0)", "torch.where(kept, X / rate, 0.0)"),
    ("dropout.py", "torch.where(kept, X / (1 - rate), 0.0)", "torch.where(kept, 0.0, X / (1 - rate))"),
    ("dropout.py", "self.set_rate if self.training else 0.0", "self.set_rate / 2 if self.training else 0.0"),
    ("dropout.py", "self.set_rate if self.training else 0.0", "0.0 if self.training else self.set_rate"),
)  # fmt: skip

EQUIVALENT = (
    # The target of a row that is not scored is looked up, so that it can be anything, and the result thrown away.
    ("loss.py", "torch.where(scored, y, 0)", "torch.where(scored, y, 1)"),
    # A mask is an input: how it was drawn is for statistics to say (tests/model/test_dropout.py).
    ("dropout.py", "bernoulli_(1 - rate)", "bernoulli_(rate)"),
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A folder with the package to be damaged."""
    folder = tmp_path_factory.mktemp("damaged")
    ignored = shutil.ignore_patterns("__pycache__", "bundle")
    shutil.copytree(root / "src" / "glassformer", folder / "glassformer", ignore=ignored)
    return folder


@pytest.fixture
def damaged(request: pytest.FixtureRequest, copy: Path) -> Iterator[Path]:
    """The copy with one mutation, undone afterwards."""
    file, before, after = request.param
    path = copy / "glassformer" / "model" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{before!r} stands {text.count(before)} times in {file}"
    path.write_text(text.replace(before, after), encoding="utf-8")
    yield copy
    path.write_text(text, encoding="utf-8")


def violations(copy: Path, root: Path) -> dict[str, object]:
    environment = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{root / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(copy)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_undamaged_copy_keeps_the_replay_law(copy: Path, root: Path) -> None:
    assert violations(copy, root) == {}


@pytest.mark.parametrize("damaged", MUTATIONS, indirect=True, ids=lambda m: f"{m[0]}: {m[2]}")
def test_a_changed_token_is_seen(damaged: Path, root: Path) -> None:
    assert violations(damaged, root)


@pytest.mark.parametrize("damaged", EQUIVALENT, indirect=True, ids=lambda m: f"{m[0]}: {m[2]}")
def test_a_change_without_consequence_is_not_seen(damaged: Path, root: Path) -> None:
    assert violations(damaged, root) == {}
