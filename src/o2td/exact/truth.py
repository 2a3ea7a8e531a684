"""The truth about a problem: its values, its state distribution, and the best approximation."""

from __future__ import annotations

import numpy as np

from o2td.arrays import Floats
from o2td.exact.bellman_system import finite_problem, system
from o2td.model import Model
from o2td.problem import Problem


def value(problem: Problem) -> Floats:
    """`V = (I - P_gamma)^-1 R`, the expected discounted reward of the target from each state.

    It is 0 in terminal states and where the target is not followed. Raises `NoAnswerError`, naming
    a state, if rewards are undiscounted and episodes never end.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    >>> exact.value(Problem(P, np.array([0.0, 1.0]), 0.5, one, one, np.eye(2)))
    array([1., 2.])
    """
    return system(problem).value.copy()


def state_distribution(problem: Problem) -> Floats:
    """`xi`: the behaviour's long-run share of time in each state, including restarts.

    It is 0 for terminal states, because a row that ends an episode is followed by one from `start`,
    and for transient states. For periodic chains it is the time average. Raises `NoAnswerError` if
    more than one closed set of states can be reached. Metrics restrict `xi` to the states in which
    the target is followed, and renormalise.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((3, 1))
    >>> P = np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 0.0]]])
    >>> ends = {"start": [1.0, 0, 0], "terminal": [2]}
    >>> chain = Problem(P, np.zeros(3), 1.0, one, one, np.eye(3), **ends)
    >>> exact.state_distribution(chain)
    array([0.5, 0.5, 0. ])
    """
    return finite_problem(problem).visits.copy()


def best_approximation(problem: Problem) -> Floats:
    """`theta* = argmin_theta |Phi theta - V|_xi`; of minimum norm if the features are dependent.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> same = np.ones((2, 2))  # one feature, twice
    >>> problem = Problem(P, np.array([0.0, 1.0]), 0.0, one, one, same)
    >>> exact.best_approximation(problem).round(12)
    array([0.25, 0.25])
    """
    return system(problem).best.center.copy()


def model(problem: Problem) -> Model:
    """The problem as algorithms may see it: every transition with its long-run probability.

    >>> import numpy as np
    >>> from o2td import Problem, exact
    >>> one = np.ones((2, 1))
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> exact.model(Problem(P, np.zeros(2), 0.9, one, one, np.eye(2))).probability
    array([0.5, 0.5])
    """
    p, xi = finite_problem(problem).pairs, problem.visits
    behavior, target = problem.behavior[p.state, p.action], problem.target[p.state, p.action]
    probability = xi[p.state] * behavior * p.probability
    seen = probability > 0.0
    return Model(
        phi=problem.features,
        visits=xi,
        interest=problem.interest,
        state=p.state[seen].astype(np.int64),
        next_state=p.next_state[seen].astype(np.int64),
        probability=probability[seen],
        reward=p.reward[seen],
        discount=p.discount[seen],
        rho=problem.ratio[p.state, p.action][seen],
        target_prob=target[seen],
        behavior_prob=behavior[seen],
    )
