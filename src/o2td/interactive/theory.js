// What o2td.exact computes, for a small problem: truth, limits, stability, amplification, mean paths.
"use strict";

const Theory = (() => {
  const { zeros, eye, transpose, dot, times, multiply, minus, scaleRows, solve, solveVector, svd, rankOf,
    orthonormal, leastSquares, eigenvalues } = Linear;
  const STEPS = 1000;
  const READINGS = ["printed", "sample", "state", "moments"];

  // The chain under a policy: (s, s') sums of weight(pair) over pairs.
  function matrix(problem, weight) {
    const M = zeros(problem.states, problem.states);
    problem.pairs.forEach((pair, k) => { M[pair.s][pair.t] += weight(pair, k); });
    return M;
  }

  // Long-run shares of time under the behaviour, restarts included; null where they are not unique.
  function visits(problem) {
    const n = problem.states, P = zeros(n, n);
    for (const pair of problem.pairs) {
      const p = problem.behavior[pair.s][pair.a] * pair.p;
      if (!problem.terminal[pair.t]) P[pair.s][pair.t] += p;
      else problem.start.forEach((share, t) => { P[pair.s][t] += p * share; });
    }
    const reached = problem.start.map((share) => share > 0), queue = [];
    reached.forEach((yes, s) => { if (yes) queue.push(s); });
    while (queue.length) {
      const s = queue.pop();
      P[s].forEach((p, t) => { if (p > 0 && !reached[t]) { reached[t] = true; queue.push(t); } });
    }
    const kept = reached.flatMap((yes, s) => (yes ? [s] : []));
    // Balance equations, the last of which follows from the others and gives way to the sum.
    const A = kept.map((t) => kept.map((s) => (s === t ? 1 : 0) - P[s][t]));
    A[kept.length - 1] = kept.map(() => 1);
    const share = solveVector(A, kept.map((_, i) => (i === kept.length - 1 ? 1 : 0)));
    if (!share) return null;
    const xi = new Array(n).fill(0);
    kept.forEach((s, i) => { xi[s] = share[i] > 1e-15 ? share[i] : 0; });
    return xi;
  }

  function system(problem) {
    const n = problem.states, followed = (pair) => problem.target[pair.s][pair.a] * pair.p;
    const active = problem.target.map((row, s) => !problem.terminal[s] && row.some((p) => p > 0));
    const P = matrix(problem, (pair) => followed(pair) * pair.g);
    const R = new Array(n).fill(0);
    problem.pairs.forEach((pair) => { R[pair.s] += followed(pair) * pair.r; });
    const L = minus(eye(n), P), V = solveVector(L, R), xi = visits(problem);
    if (!V) return { failure: "Nothing is discounted and episodes never end: lower γ." };
    if (!xi) return { failure: "The behaviour has more than one closed set of states." };
    let weight = xi.map((x, s) => (active[s] ? x : 0));
    const total = weight.reduce((a, b) => a + b, 0);
    if (!(total > 0)) return { failure: "The behaviour visits no state in which the target is followed." };
    weight = weight.map((x) => x / total);
    const Phi = problem.phi, delta = multiply(L, Phi), root = weight.map(Math.sqrt);
    return { n, d: Phi[0].length, active, P, R, L, V, xi, weight, root, Phi, delta };
  }

  const rmse = (s, theta) => Math.sqrt(s.weight.reduce((sum, w, i) => (w > 0 ? sum + w * (dot(s.Phi[i], theta) - s.V[i]) ** 2 : sum), 0));
  const best = (s) => leastSquares(scaleRows(s.Phi, s.root), s.V.map((v, i) => v * s.root[i]));

  function ratio(s, error, least) {
    const norm = Math.sqrt(dot(s.weight, s.V.map((v) => v * v))) || 1;
    if (least > 1e-9 * norm) return Math.max(1, error / least);
    return error <= 1e-9 * norm ? 1 : Infinity;
  }

  // -- transitions of the behaviour, with their long-run probabilities ------------------------------

  function rows(problem, s) {
    return problem.pairs.flatMap((pair) => {
      const b = problem.behavior[pair.s][pair.a], probability = s.xi[pair.s] * b * pair.p;
      if (!(probability > 0)) return [];
      const phi = s.Phi[pair.s], dphi = phi.map((x, j) => x - pair.g * s.Phi[pair.t][j]);
      return [{ ...pair, probability, rho: problem.target[pair.s][pair.a] / b, phi, dphi }];
    });
  }

  // O2TD's weight by transition, in its four readings; 0 where a denominator is.
  function omega(reading, s, model) {
    const over = (a, b) => (b > 0 ? a / b : 0);
    if (reading === "sample" || reading === "printed") return model.map((row) => {
      const w = over(dot(row.dphi, row.phi), dot(row.dphi, row.dphi));
      return reading === "sample" ? w : over(w, row.rho);
    });
    const along = new Array(s.n).fill(0), square = new Array(s.n).fill(0), mean = zeros(s.n, s.d);
    for (const row of model) {
      const share = (row.probability * row.rho) / s.xi[row.s];
      along[row.s] += share * dot(row.dphi, row.phi);
      square[row.s] += share * dot(row.dphi, row.dphi);
      row.dphi.forEach((x, j) => { mean[row.s][j] += share * x; });
    }
    const byState = along.map((a, i) => reading === "moments" ? over(a, square[i]) : over(dot(mean[i], s.Phi[i]), dot(mean[i], mean[i])));
    return model.map((row) => byState[row.s]);
  }

  function followOn(problem, s) {
    const interested = s.xi.map((x, i) => x * problem.interest[i]);
    const K = zeros(s.n, s.n);
    for (const row of s.model) K[row.s][row.t] += (row.probability * row.rho * row.g) / s.xi[row.s];
    return { interested, followed: solveVector(transpose(minus(eye(s.n), K)), interested) };
  }

  // Weighted TD: A = E[rho z dphi^T], b = E[rho z r], with `weight` entering the trace.
  function weighted(s, weight, trace) {
    const K = zeros(s.n, s.n), inflow = zeros(s.n, s.d);
    s.model.forEach((row, k) => {
      const carried = trace * row.rho * row.g;
      K[row.s][row.t] += (row.probability * carried) / s.xi[row.s];
      row.phi.forEach((x, j) => { inflow[row.t][j] += row.probability * carried * weight[k] * x; });
    });
    const Z = trace > 0 ? solve(transpose(minus(eye(s.n), K)), inflow) : inflow;
    if (!Z) return null;
    const A = zeros(s.d, s.d), b = new Array(s.d).fill(0);
    s.model.forEach((row, k) => {
      for (let i = 0; i < s.d; i++) {
        const z = row.rho * row.probability * (weight[k] * row.phi[i] + (trace > 0 ? Z[row.s][i] / s.xi[row.s] : 0));
        b[i] += z * row.r;
        for (let j = 0; j < s.d; j++) A[i][j] += z * row.dphi[j];
      }
    });
    return { A, b };
  }

  // Residual gradient with two independent successors: A = (L Phi)^T Xi L Phi.
  function residual(s) {
    const mean = zeros(s.n, s.d), reward = new Array(s.n).fill(0);
    for (const row of s.model) {
      const share = (row.probability * row.rho) / s.xi[row.s];
      reward[row.s] += share * row.r;
      row.dphi.forEach((x, j) => { mean[row.s][j] += share * x; });
    }
    const left = transpose(scaleRows(mean, s.xi));
    return { A: multiply(left, mean), b: times(left, reward) };
  }

  // -- where mean dynamics lead ---------------------------------------------------------------------

  // theta += alpha (b - A theta) from `start`: limit, eigenvalues, stability, largest step size.
  function lead({ A, b }, start) {
    const n = A.length, { U, s, V } = svd(A), rank = s[0] > 0 ? rankOf(s, n) : 0;
    const eigen = eigenvalues(A);
    for (let k = rank; k < n; k++) eigen[k] = [0, 0];
    const whole = eigen.slice(0, rank), largest = Math.max(0, ...whole.map((z) => Math.hypot(...z)));
    const left = transpose(U).slice(rank), right = transpose(V).slice(rank);
    const missed = left.map((y) => dot(y, b)), norm = Linear.size(b);
    if (Linear.size(missed) > 1e-9 * norm) return { theta: null, stable: false, eigen, maxStep: 0 };
    let theta = rank === n ? solveVector(A, b) : leastSquares(A, b), semisimple = true;
    if (rank < n) {
      // What the left null space sees of theta never changes.
      const meet = left.map((y) => right.map((x) => dot(y, x)));
      semisimple = svd(meet).s[n - rank - 1] > 1e-8;
      const part = semisimple && solveVector(meet, left.map((y) => dot(y, start) - dot(y, theta)));
      if (part) theta = theta.map((x, i) => x + dot(part, right.map((r) => r[i])));
    }
    const stable = semisimple && whole.every((z) => z[0] > 1e-13 * largest);
    const maxStep = stable ? Math.min(...whole.map((z) => (2 * z[0]) / (z[0] ** 2 + z[1] ** 2))) : 0;
    return { theta, stable, eigen, maxStep };
  }

  // Expected RMSE at the start and after 1, 2, ... steps.
  function path(s, { A, b }, start, alpha) {
    const found = [rmse(s, start)];
    let theta = start;
    for (let t = 0; t < STEPS; t++) {
      const pull = times(A, theta);
      theta = theta.map((x, i) => x + alpha * (b[i] - pull[i]));
      found.push(rmse(s, theta));
      if (!(found[t + 1] < 1e12)) break;
    }
    return found;
  }

  // -- directions -----------------------------------------------------------------------------------

  // X of a method with weight(s) per state and traces: (I - lambda P^T)^-1 diag(weight) Phi.
  function traced(s, weight, trace) {
    const here = scaleRows(s.Phi, weight);
    return trace > 0 ? solve(transpose(minus(eye(s.n), s.P.map((row) => row.map((p) => trace * p)))), here) : here;
  }

  // |Pi|_xi for the projection orthogonal to span(L^T X): one over the cosine of its largest angle.
  function amplification(s, X) {
    const Z = multiply(transpose(s.L), X), seen = s.weight.flatMap((w, i) => (w > 0 ? [i] : []));
    const largest = Math.max(...Z.flat().map(Math.abs));
    if (Z.some((row, i) => !(s.weight[i] > 0) && row.some((x) => Math.abs(x) > 1e-12 * largest))) return Infinity;
    const F = orthonormal(seen.map((i) => s.Phi[i].map((x) => x * s.root[i])));
    const Y = orthonormal(seen.map((i) => Z[i].map((x) => x / s.root[i])));
    if (!F[0].length || F[0].length !== Y[0].length) return null;
    const cosine = svd(multiply(transpose(Y), F)).s.at(-1);
    return cosine > 1e-13 ? Math.max(1, 1 / cosine) : Infinity;
  }

  // SOTD from infinitely many rows: stage 1 from zero, stage 2 by least squares.
  function sotd(s) {
    const kept = s.active.flatMap((yes, i) => (yes && s.xi[i] > 0 ? [i] : []));
    const D = kept.map((i) => s.delta[i]), R = kept.map((i) => s.R[i]), phi = kept.map((i) => s.Phi[i]);
    const C = multiply(transpose(scaleRows(phi, kept.map((i) => s.xi[i]))), phi);
    const full = svd(D), rank = full.s[0] > 0 ? rankOf(full.s, Math.max(kept.length, s.d)) : 0;
    if (rank === s.d && svd(C).s.at(-1) > 0) return leastSquares(D, R);
    const X = transpose(C.map((row) => leastSquares(transpose(D), row)));
    return leastSquares(multiply(transpose(X), D), times(transpose(X), R));
  }

  // -- everything at once ---------------------------------------------------------------------------

  // `problem` has pairs {s, a, t, p, r, g}; the answer has a row for each method.
  function analyze(problem, trace, alpha) {
    const s = system(problem);
    if (s.failure) return s;
    s.model = rows(problem, s);
    const start = problem.initial_theta || new Array(s.d).fill(0);
    const star = best(s), least = rmse(s, star);
    const { interested, followed } = followOn(problem, s);
    const emphasis = followed.map((f, i) => trace * interested[i] + (1 - trace) * f);
    const given = (weight) => s.model.map((row) => weight[row.s] / s.xi[row.s]);
    const stateWeight = (values) => { const by = new Array(s.n).fill(0); s.model.forEach((row, k) => { by[row.s] = values[k]; }); return by; };
    // Directions count the states in which the target is followed, as errors do.
    const total = s.active.reduce((sum, yes, i) => sum + (yes ? s.xi[i] : 0), 0);
    const shown = (weight) => weight.map((w, i) => (s.active[i] ? w / total : 0));
    const methods = [];
    const learner = (key, dynamics, X) => {
      const reached = dynamics ? lead(dynamics, start) : { theta: null, stable: false, eigen: [], maxStep: 0 };
      const error = reached.theta ? rmse(s, reached.theta) : Infinity;
      methods.push({
        key, kind: "learner", ...reached, rmse: error, ratio: reached.theta ? ratio(s, error, least) : Infinity,
        X, amplification: X ? amplification(s, X) : null, path: dynamics ? path(s, dynamics, start, alpha) : [],
      });
    };
    const solver = (key, theta, X) => {
      const error = rmse(s, theta);
      methods.push({ key, kind: "solver", theta, rmse: error, ratio: ratio(s, error, least), X, amplification: X ? amplification(s, X) : null });
    };
    solver("best", star, traced(s, s.weight, 1));
    learner("td", weighted(s, s.model.map(() => 1), trace), traced(s, s.weight, trace));
    learner("etd", weighted(s, given(emphasis), trace), traced(s, shown(emphasis), trace));
    learner("rg", residual(s), scaleRows(s.delta, s.weight));
    for (const reading of READINGS) {
      const weight = omega(reading, s, s.model), by = stateWeight(weight);
      const direct = reading === "state" || reading === "moments";
      learner(`o2td-${reading}`, weighted(s, weight, trace), direct ? traced(s, by.map((w, i) => w * s.weight[i]), trace) : null);
    }
    solver("sotd", sotd(s), null);
    return { ...s, start, best: star, bestRmse: least, methods };
  }

  return { analyze, system, STEPS };
})();
