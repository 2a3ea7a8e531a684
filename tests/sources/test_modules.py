"""PyTorch modules as policies and value models; PyTorch is not among the locked packages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation, sources
from o2td.errors import InputError

torch = pytest.importorskip("torch", reason="torch is not installed")

ROWS = 400
KEYS = np.random.default_rng(0)
LOG = pd.DataFrame(
    {
        "episode": np.arange(ROWS) // 8,
        "action": KEYS.integers(0, 3, ROWS),
        "obs_0": KEYS.normal(size=ROWS),
        "obs_1": KEYS.normal(size=ROWS),
        "reward": KEYS.normal(size=ROWS),
        "terminated": np.arange(ROWS) % 8 == 7,
        "behavior_prob": 1 / 3,
    }
)
X = LOG[["obs_0", "obs_1"]].to_numpy()
STATES = LOG.drop(columns=["obs_0", "obs_1"]).assign(state=KEYS.integers(0, 5, ROWS))
WEIGHTS = np.array([[0.5, -0.5, 0.0], [0.0, 1.0, -1.0]])


def chances():
    scores = np.exp(X @ WEIGHTS)
    return scores / scores.sum(axis=1, keepdims=True)


class Linear(torch.nn.Module):
    """Scores that are linear in observations, in one of the forms that modules return."""

    def __init__(self, form: str = "logits", dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 3, bias=False, dtype=dtype)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor(WEIGHTS.T))
        self.form = form

    def forward(self, x):
        scores = self.layer(x)
        if self.form == "probabilities":
            return torch.softmax(scores, dim=1)
        if self.form == "log-probabilities":
            return torch.log_softmax(scores, dim=1)
        if self.form == "distribution":
            return torch.distributions.Categorical(logits=scores)
        return (scores, scores[:, 0]) if self.form == "pair" else scores


def ratios(joined, policy, log=LOG):
    return joined(sources.open_logs(log, discount=0.9, target=policy), 64)["rho"]


def taken(matrix, log=LOG):
    return 3 * matrix[np.arange(ROWS), log["action"]]


@pytest.mark.parametrize(
    "form", ["logits", "probabilities", "log-probabilities", "distribution", "function"]
)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_same_policy_in_every_form_and_precision(form, dtype, joined):
    kind = getattr(torch, dtype)
    module = Linear(form, kind)

    def function(x):
        return torch.softmax(module(torch.tensor(x, dtype=kind)).double(), dim=1)

    policy = function if form == "function" else module
    near = {"float64": 1e-9, "float32": 1e-5, "float16": 1e-2, "bfloat16": 6e-2}[dtype]
    np.testing.assert_allclose(ratios(joined, policy), taken(chances()), rtol=near)


def test_states_are_looked_up_in_an_embedding(joined):
    module = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 3))
    with torch.no_grad():
        table = torch.softmax(module(torch.arange(5)).double(), dim=1).numpy()
    want = taken(table[STATES["state"]], STATES)
    np.testing.assert_allclose(ratios(joined, module, STATES), want, rtol=1e-6)


def test_a_module_without_weights(joined):
    class Rule(torch.nn.Module):
        def forward(self, x):
            return torch.stack([x[:, 0], x[:, 1], -x[:, 0]], dim=1)

    scores = np.exp(np.column_stack([X, -X[:, 0]]))
    want = taken(scores / scores.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(ratios(joined, Rule()), want, rtol=1e-5)


def test_training_layers_are_at_rest_during_the_call_and_as_before_afterwards(joined):
    frozen = torch.nn.BatchNorm1d(3).eval()
    module = torch.nn.Sequential(
        torch.nn.BatchNorm1d(2), torch.nn.Dropout(0.5), torch.nn.Linear(2, 3), frozen
    )
    before = {name: value.clone() for name, value in module.state_dict().items()}
    first, again = ratios(joined, module), ratios(joined, module)
    np.testing.assert_array_equal(first, again)
    assert [layer.training for layer in module] == [True, True, True, False]
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_what_a_module_may_not_return():
    with pytest.raises(InputError, match=r"target: the module returned a tuple; wrap it in a fun"):
        sources.open_logs(LOG, discount=0.9, target=Linear("pair")).scan()
    with pytest.raises(InputError, match=r"value_model: the module returned a tuple; wrap it in"):
        evaluation.evaluate(
            LOG, 0.9, target=Linear(), value_model=Linear("pair"), methods="dr", lanes=0
        )


@pytest.mark.parametrize("outputs", [1, 3])
def test_value_models_say_what_the_same_function_says(outputs):
    torch.manual_seed(4)
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, outputs)
    ).double()
    W, b, V, c = (one.detach().numpy() for one in module.parameters())
    asked = {"target": Linear(dtype=torch.float64), "methods": ["dr", "wdr"], "lanes": 0}
    got = evaluation.evaluate(LOG, 0.9, value_model=module, **asked)
    want = evaluation.evaluate(
        LOG, 0.9, value_model=lambda x: np.tanh(x @ W.T + b) @ V.T + c, **asked
    )
    for method in ("dr", "wdr"):
        assert got[method].value == pytest.approx(want[method].value, rel=1e-9)
        assert got[method].low == pytest.approx(want[method].low, rel=1e-9)
    plain = evaluation.evaluate(LOG, 0.9, **asked)
    assert got["dr"].value != pytest.approx(plain["dr"].value, rel=1e-6)


def test_a_tensor_is_a_table_by_state():
    table = torch.linspace(-1.0, 1.0, 5)
    policy = torch.full((5, 3), 1 / 3, dtype=torch.float64)
    asked = {"methods": "dr", "lanes": 0}
    got = evaluation.evaluate(STATES, 0.9, target=policy, value_model=table, **asked)
    want = evaluation.evaluate(
        STATES, 0.9, target=policy.numpy(), value_model=table.numpy(), **asked
    )
    assert got["dr"].value == want["dr"].value
