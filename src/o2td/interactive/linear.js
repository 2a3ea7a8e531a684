// Linear algebra for small matrices: arrays of rows, nothing in place.
"use strict";

const Linear = (() => {
  const EPS = 2 ** -52;
  const zeros = (n, m) => Array.from({ length: n }, () => new Array(m).fill(0));
  const eye = (n) => zeros(n, n).map((row, i) => { row[i] = 1; return row; });
  const transpose = (A) => (A.length ? A[0].map((_, j) => A.map((row) => row[j])) : []);
  const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; i++) sum += a[i] * b[i]; return sum; };
  const times = (A, x) => A.map((row) => dot(row, x));
  const multiply = (A, B) => { const columns = transpose(B); return A.map((row) => columns.map((c) => dot(row, c))); };
  const minus = (A, B) => A.map((row, i) => row.map((x, j) => x - B[i][j]));
  const scaleRows = (A, weight) => A.map((row, i) => row.map((x) => x * weight[i]));
  const column = (A, j) => A.map((row) => row[j]);
  const size = (x) => Math.hypot(...x);

  // x with A x = B (B a matrix), by elimination with row pivots and one step of refinement;
  // null where A is singular to working precision.
  function solve(A, B) {
    const n = A.length, LU = A.map((row) => row.slice()), order = A.map((_, i) => i);
    const largest = Math.max(...A.flat().map(Math.abs));
    for (let k = 0; k < n; k++) {
      let pivot = k;
      for (let i = k + 1; i < n; i++) if (Math.abs(LU[i][k]) > Math.abs(LU[pivot][k])) pivot = i;
      if (!(Math.abs(LU[pivot][k]) > n * EPS * largest)) return null;
      [LU[k], LU[pivot]] = [LU[pivot], LU[k]];
      [order[k], order[pivot]] = [order[pivot], order[k]];
      for (let i = k + 1; i < n; i++) {
        const factor = (LU[i][k] /= LU[k][k]);
        for (let j = k + 1; j < n; j++) LU[i][j] -= factor * LU[k][j];
      }
    }
    const one = (b) => {
      const x = order.map((i) => b[i]);
      for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) x[i] -= LU[i][j] * x[j];
      for (let i = n - 1; i >= 0; i--) {
        for (let j = i + 1; j < n; j++) x[i] -= LU[i][j] * x[j];
        x[i] /= LU[i][i];
      }
      return x;
    };
    return transpose(transpose(B).map((b) => {
      const x = one(b), rest = times(A, x).map((y, i) => b[i] - y), more = one(rest);
      return x.map((value, i) => value + more[i]);
    }));
  }
  const solveVector = (A, b) => { const x = solve(A, b.map((value) => [value])); return x && x.map((row) => row[0]); };

  // A = U diag(s) V^T with s falling, by one-sided Jacobi rotations; A may be wide or tall.
  function svd(A) {
    if (A.length < A[0].length) { const { U, s, V } = svd(transpose(A)); return { U: V, s, V: U }; }
    const n = A[0].length, G = transpose(A), V = eye(n); // rows of G are columns of A
    for (let sweep = 0; sweep < 60; sweep++) {
      let turned = false;
      for (let p = 0; p < n - 1; p++) for (let q = p + 1; q < n; q++) {
        const a = dot(G[p], G[p]), b = dot(G[q], G[q]), c = dot(G[p], G[q]);
        if (Math.abs(c) <= EPS * Math.sqrt(a * b) || c === 0) continue;
        turned = true;
        const zeta = (b - a) / (2 * c);
        const t = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
        const cos = 1 / Math.hypot(1, t), sin = cos * t;
        for (const M of [G, V]) {
          const x = M[p], y = M[q];
          M[p] = x.map((value, i) => cos * value - sin * y[i]);
          M[q] = x.map((value, i) => sin * value + cos * y[i]);
        }
      }
      if (!turned) break;
    }
    const s = G.map(size), order = s.map((_, i) => i).sort((i, j) => s[j] - s[i]);
    return {
      s: order.map((i) => s[i]),
      U: transpose(order.map((i) => G[i].map((x) => (s[i] > 0 ? x / s[i] : 0)))),
      V: transpose(order.map((i) => V[i])),
    };
  }

  const rankOf = (s, longest) => s.filter((x) => x > s[0] * longest * 16 * EPS).length;

  // An orthonormal basis of the span of A's columns, as columns; columns may have any units.
  function orthonormal(A) {
    const unit = transpose(A).map((c) => size(c) || 1);
    const { U, s } = svd(A.map((row) => row.map((x, j) => x / unit[j])));
    const rank = s[0] > 0 ? rankOf(s, A.length) : 0;
    return U.map((row) => row.slice(0, rank));
  }

  // The least-squares solution of minimum norm.
  function leastSquares(A, b) {
    const { U, s, V } = svd(A), rank = s[0] > 0 ? rankOf(s, Math.max(A.length, A[0].length)) : 0;
    const y = transpose(U).slice(0, rank).map((u, i) => dot(u, b) / s[i]);
    return V.map((row) => dot(row.slice(0, rank), y));
  }

  // Eigenvalues [re, im] of a real matrix, the largest first: Hessenberg form, then QR steps with
  // complex shifts from the trailing two by two block.
  function eigenvalues(A) {
    const n = A.length, re = A.map((row) => row.slice()), im = zeros(n, n);
    hessenberg(re);
    const found = [];
    let high = n - 1, tries = 0;
    while (high >= 0) {
      let low = high;
      while (low > 0) {
        const near = Math.hypot(re[low][low], im[low][low]) + Math.hypot(re[low - 1][low - 1], im[low - 1][low - 1]);
        if (Math.hypot(re[low][low - 1], im[low][low - 1]) <= EPS * near) { re[low][low - 1] = im[low][low - 1] = 0; break; }
        low--;
      }
      if (low === high) { found.push([re[high][high], im[high][high]]); high--; tries = 0; continue; }
      if (low === high - 1) { found.push(...pair(re, im, low)); high -= 2; tries = 0; continue; }
      if (++tries > 300) return found.concat(Array.from({ length: high + 1 }, () => [NaN, NaN]));
      const both = pair(re, im, high - 1), corner = [re[high][high], im[high][high]];
      const off = both.map((z) => Math.hypot(z[0] - corner[0], z[1] - corner[1]));
      const shift = tries % 11 === 10 ? [corner[0] + Math.abs(re[high][high - 1]), corner[1]] : both[off[0] < off[1] ? 0 : 1];
      step(re, im, low, high, shift);
    }
    return found.sort((a, b) => Math.hypot(...b) - Math.hypot(...a));
  }

  function hessenberg(A) {
    const n = A.length;
    for (let k = 0; k < n - 2; k++) for (let i = n - 1; i > k + 1; i--) {
      const r = Math.hypot(A[i - 1][k], A[i][k]);
      if (A[i][k] === 0) continue;
      const c = A[i - 1][k] / r, s = A[i][k] / r;
      for (let j = 0; j < n; j++) [A[i - 1][j], A[i][j]] = [c * A[i - 1][j] + s * A[i][j], c * A[i][j] - s * A[i - 1][j]];
      for (let j = 0; j < n; j++) [A[j][i - 1], A[j][i]] = [c * A[j][i - 1] + s * A[j][i], c * A[j][i] - s * A[j][i - 1]];
    }
  }

  // The two eigenvalues of the complex block at k, the second from the product where that is exact.
  function pair(re, im, k) {
    const [a, b, c, d] = [[k, k], [k, k + 1], [k + 1, k], [k + 1, k + 1]].map(([i, j]) => [re[i][j], im[i][j]]);
    const half = [(a[0] - d[0]) / 2, (a[1] - d[1]) / 2], mean = [(a[0] + d[0]) / 2, (a[1] + d[1]) / 2];
    const inside = [half[0] ** 2 - half[1] ** 2 + b[0] * c[0] - b[1] * c[1], 2 * half[0] * half[1] + b[0] * c[1] + b[1] * c[0]];
    const root = squareRoot(inside);
    return [[mean[0] + root[0], mean[1] + root[1]], [mean[0] - root[0], mean[1] - root[1]]];
  }

  function squareRoot([x, y]) {
    const r = Math.hypot(x, y);
    if (r === 0) return [0, 0];
    const s = Math.sqrt((r + Math.abs(x)) / 2);
    return x >= 0 ? [s, y / (2 * s)] : [Math.abs(y) / (2 * s), y >= 0 ? s : -s];
  }

  // One QR step of the complex Hessenberg block low..high: Givens rotations left, then right.
  function step(re, im, low, high, shift) {
    const turns = [];
    for (let i = low; i <= high; i++) { re[i][i] -= shift[0]; im[i][i] -= shift[1]; }
    for (let k = low; k < high; k++) {
      const x = [re[k][k], im[k][k]], y = [re[k + 1][k], im[k + 1][k]], r = Math.hypot(...x, ...y) || 1;
      const c = [x[0] / r, x[1] / r], s = [y[0] / r, y[1] / r];
      turns.push([c, s]);
      for (let j = k; j <= high; j++) {
        const p = [re[k][j], im[k][j]], q = [re[k + 1][j], im[k + 1][j]];
        re[k][j] = c[0] * p[0] + c[1] * p[1] + s[0] * q[0] + s[1] * q[1];
        im[k][j] = c[0] * p[1] - c[1] * p[0] + s[0] * q[1] - s[1] * q[0];
        re[k + 1][j] = c[0] * q[0] - c[1] * q[1] - (s[0] * p[0] - s[1] * p[1]);
        im[k + 1][j] = c[0] * q[1] + c[1] * q[0] - (s[0] * p[1] + s[1] * p[0]);
      }
    }
    for (let k = low; k < high; k++) {
      const [c, s] = turns[k - low];
      for (let i = low; i <= Math.min(k + 1, high); i++) {
        const p = [re[i][k], im[i][k]], q = [re[i][k + 1], im[i][k + 1]];
        re[i][k] = p[0] * c[0] - p[1] * c[1] + q[0] * s[0] - q[1] * s[1];
        im[i][k] = p[0] * c[1] + p[1] * c[0] + q[0] * s[1] + q[1] * s[0];
        re[i][k + 1] = q[0] * c[0] + q[1] * c[1] - (p[0] * s[0] + p[1] * s[1]);
        im[i][k + 1] = q[1] * c[0] - q[0] * c[1] - (p[1] * s[0] - p[0] * s[1]);
      }
    }
    for (let i = low; i <= high; i++) { re[i][i] += shift[0]; im[i][i] += shift[1]; }
  }

  return {
    EPS, zeros, eye, transpose, dot, times, multiply, minus, scaleRows, column, size,
    solve, solveVector, svd, rankOf, orthonormal, leastSquares, eigenvalues,
  };
})();
