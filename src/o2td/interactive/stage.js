// The geometry: V, span Phi, slants and normals in three dimensions, turned by pointer or keys.
"use strict";

const Stage = (() => {
  const { make, mark } = Plots;
  const { dot, transpose, svd, orthonormal, multiply } = Linear;
  const add = (a, b, k = 1) => a.map((x, i) => x + k * b[i]);
  const scaled = (a, k) => a.map((x) => k * x);
  const length = (a) => Math.hypot(...a);
  const unit = (a, fallback) => (length(a) > 1e-12 ? scaled(a, 1 / length(a)) : fallback);
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const TOP = 44; // room for the buttons
  const SUB = "₀₁₂₃₄₅₆₇₈₉";
  const sub = (k) => String(k).replace(/\d/g, (c) => SUB[c]);

  return class {
    constructor(svg, onMove, onChoose) {
      Object.assign(this, { svg, onMove, onChoose, yaw: -0.42, pitch: 0.56, zoom: 1, focus: "whole", frame: null, arrow: 1 });
      this.listen();
    }

    // A new problem: look at it afresh.
    reset() { Object.assign(this, { yaw: -0.42, pitch: 0.56, zoom: 1, frame: null, base: null, center: null }); }

    // Where a value function stands: axes are the visited states, or three directions of many.
    place(values) {
      const r = this.result;
      if (this.flat) return [0, 1, 2].map((k) => (k < this.seen.length ? values[this.seen[k]] * r.root[this.seen[k]] : 0));
      const x = values.map((v, s) => v * r.root[s]);
      return this.frame.map((e) => dot(e, x));
    }

    // What a move on the stage does to a value function.
    unplace(move) {
      const r = this.result, change = new Array(r.n).fill(0);
      if (this.flat) this.seen.forEach((s, k) => { change[s] = move[k] / r.root[s]; });
      else for (const s of this.seen) change[s] = this.frame.reduce((sum, e, k) => sum + e[s] * move[k], 0) / r.root[s];
      return change;
    }

    update(result, looks, chosen, held) {
      Object.assign(this, { result, looks, chosen });
      this.seen = result.weight.flatMap((w, s) => (w > 0 ? [s] : []));
      this.flat = this.seen.length <= 3;
      const value = (theta) => result.Phi.map((row) => dot(row, theta));
      const scaledPhi = this.seen.map((s) => result.Phi[s].map((x) => x * result.root[s]));
      const Q = orthonormal(scaledPhi);
      this.rank = Q[0].length;
      this.landed = result.methods.filter((m) => m.theta).map((m) => ({ ...m, value: value(m.theta) }));
      if (!this.flat) this.aim(Q);
      this.V = this.place(result.V);
      this.best = this.place(value(result.best));
      for (const m of this.landed) m.at = this.place(m.value);
      this.columns = transpose(result.Phi).slice(0, 2).map((c) => this.place(c));
      if (!held || !this.base) this.measure(Q, held);
      this.draw();
    }

    // Three directions of many: the perpendicular, and the two along which landings differ most.
    aim(Q) {
      const r = this.result, n = r.n, full = (x) => { const v = new Array(n).fill(0); this.seen.forEach((s, i) => { v[s] = x[i]; }); return v; };
      const at = (v) => this.seen.map((s) => v[s] * r.root[s]);
      const star = at(r.Phi.map((row) => dot(row, r.best))), gap = add(at(r.V), star, -1);
      const outside = length(gap) > 1e-9 * (length(at(r.V)) || 1) ? unit(gap) : new Array(this.seen.length).fill(0);
      const spread = this.landed.map((m) => unit(add(at(m.value), star, -1), null)).filter(Boolean);
      const rows = [...spread, ...transpose(Q).map((q) => scaled(q, 1e-3))];
      const V = transpose(svd(rows).V);
      let plane = V.slice(0, 2).map((v) => unit(multiply(Q, multiply(transpose(Q), v.map((x) => [x]))).map((row) => row[0]), outside));
      let upright = outside;
      if (this.frame) {
        // As little turned as can be since last time.
        const before = this.frame.map((e) => this.seen.map((s) => e[s]));
        if (dot(before[2], upright) < 0) upright = scaled(upright, -1);
        const { U, V: W } = svd(before.slice(0, 2).map((b) => plane.map((p) => dot(b, p))));
        const turn = multiply(U, transpose(W));
        plane = turn.map(([c, s]) => add(scaled(plane[0], c), plane[1], s));
      }
      this.frame = [...plane, upright].map(full);
    }

    // The upright of the view, the scale of the feature arrows, the centre and the zoom.
    measure(Q, held) {
      if (!this.base) {
        let normal = [0, 0, 1], along = [1, 0, 0];
        if (this.flat) {
          const fill = (v) => { const x = [0, 0, 0]; v.forEach((y, k) => { x[k] = y; }); return x; };
          const [q1, q2] = transpose(Q).map(fill), gap = add(this.V, this.best, -1);
          if (this.rank === 2) normal = unit(cross(q1, q2), normal);
          else if (this.rank === 1) normal = unit(gap, [0, 0, 1]);
          if (dot(normal, gap) < 0) normal = scaled(normal, -1);
          const far = this.landed.map((m) => add(m.at, this.best, -1)).sort((a, b) => length(b) - length(a))[0];
          along = unit(add(far, normal, -dot(far, normal)), q1 || along);
        }
        this.base = [along, cross(normal, along), normal];
      }
      const longest = Math.max(...this.columns.map(length)) || 1;
      this.arrow = (0.75 * (length(this.V) || 1)) / longest;
      this.fit();
    }

    fit() {
      const height = length(add(this.V, this.best, -1)), whole = this.focus === "whole";
      const near = this.landed.filter((m) => length(add(m.at, this.V, -1)) < Math.max(5 * height, whole ? 1.2 * length(this.V) : 0)).map((m) => m.at);
      const points = whole ? [[0, 0, 0], this.V, ...this.columns.map((c) => scaled(c, this.arrow)), ...(this.corners() || near)] : [this.V, this.best, ...near];
      const shown = points.map((p) => this.flatten(p)), xs = shown.map((p) => p[0]), ys = shown.map((p) => p[1]);
      const box = this.svg.getBoundingClientRect();
      const wide = Math.max(...xs) - Math.min(...xs) || 1, tall = Math.max(...ys) - Math.min(...ys) || 1;
      const room = whole ? 16 : 70; // labels and normals need some
      this.fitted = Math.min((box.width - 2 * room) / wide, (box.height - TOP - 2 * room) / tall);
      this.center = [(Math.max(...xs) + Math.min(...xs)) / 2, (Math.max(...ys) + Math.min(...ys)) / 2];
    }

    // The corners of the part of span Phi that is drawn; null where it is no plane.
    corners() {
      if (this.rank < 2 || (this.flat && this.rank > 2)) return null;
      const far = 1.5 * Math.max(length(this.V), length(add(this.V, this.best, -1)));
      const points = [[0, 0, 0], this.best, ...this.columns.map((c) => scaled(c, this.arrow)), ...this.landed.map((m) => m.at).filter((p) => length(add(p, this.best, -1)) < far)];
      let b1 = [1, 0, 0], b2 = [0, 1, 0];
      if (this.flat) {
        const normal = unit(cross(this.columns[0], this.columns[1]), this.base[2]);
        b1 = unit(add(this.base[0], normal, -dot(this.base[0], normal)), unit(this.columns[0], [1, 0, 0]));
        b2 = cross(normal, b1);
      }
      const span = [b1, b2].map((b) => points.map((p) => dot(p, b))), low = span.map((x) => Math.min(...x)), high = span.map((x) => Math.max(...x));
      const margin = 0.1 * Math.max(high[0] - low[0], high[1] - low[1]), off = this.flat ? [0, 0, 0] : scaled(this.base[2], dot(this.best, this.base[2]));
      const at = (i, j) => add(add(off, b1, low[0] - margin + i * (high[0] - low[0] + 2 * margin)), b2, low[1] - margin + j * (high[1] - low[1] + 2 * margin));
      return [at(0, 0), at(1, 0), at(1, 1), at(0, 1)];
    }

    axes() {
      const [a, b, n] = this.base, c = Math.cos(this.yaw), s = Math.sin(this.yaw);
      const right = add(scaled(a, c), b, s), away = add(scaled(b, c), a, -s);
      return { right, up: add(scaled(n, Math.cos(this.pitch)), away, Math.sin(this.pitch)), away: add(scaled(away, Math.cos(this.pitch)), n, -Math.sin(this.pitch)) };
    }
    flatten(p) { const { right, up } = this.axes(); return [dot(p, right), dot(p, up)]; }
    screen(p) {
      const [x, y] = this.flatten(p), k = this.fitted * this.zoom, { width, height } = this.box;
      return [width / 2 + k * (x - this.center[0]), (height + TOP) / 2 - k * (y - this.center[1])];
    }

    draw() {
      const focused = document.activeElement?.dataset?.handle;
      this.box = Plots.clear(this.svg);
      this.ground();
      const chosen = this.landed.find((m) => m.key === this.chosen);
      this.vectors();
      for (const m of this.landed) this.slant(m, m === chosen);
      if (chosen && chosen.X) this.normals(chosen);
      this.boxes = [];
      const v = this.screen(this.V);
      this.handle("V", "V, the true value", v, this.result.V, 9);
      this.label("V", v, true, "16px");
      for (const m of [...this.landed].sort((a, b) => (b === chosen) - (a === chosen) || (b.key === "best") - (a.key === "best"))) this.point(m, m === chosen);
      if (focused) this.svg.querySelector(`[data-handle="${focused}"]`)?.focus({ preventScroll: true });
    }

    polygon(points, attributes) { return make(this.svg, "polygon", { points: points.map((p) => this.screen(p).map((c) => c.toFixed(1)).join(",")).join(" "), ...attributes }); }
    line(p, q, attributes) {
      const [x1, y1] = this.screen(p), [x2, y2] = this.screen(q);
      return make(this.svg, "line", { x1, y1, x2, y2, ...attributes });
    }

    // span Phi: a plane with a grid, or a line.
    ground() {
      const corners = this.corners();
      if (!corners) {
        const reach = 1.4 * Math.max(length(this.best), length(this.columns[0]) * this.arrow), way = unit(this.columns[0], [1, 0, 0]);
        if (this.rank === 1) this.line(scaled(way, -0.3 * reach), scaled(way, reach), { stroke: "var(--plane)", "stroke-width": 2 });
        return;
      }
      const [a, b, c, d] = corners, between = (p, q, k) => add(scaled(p, 1 - k), q, k);
      this.polygon(corners, { fill: "var(--plane)", "fill-opacity": 0.1, stroke: "var(--plane)", "stroke-opacity": 0.5 });
      for (let k = 1; k < 8; k++) for (const [p, q] of [[between(a, b, k / 8), between(d, c, k / 8)], [between(a, d, k / 8), between(b, c, k / 8)]]) this.line(p, q, { stroke: "var(--plane)", "stroke-opacity": 0.16 });
      const [x, y] = corners.map((p) => this.screen(p)).sort((p, q) => q[1] - p[1])[0];
      make(this.svg, "text", { x: Math.min(Math.max(x, 34), this.box.width - 34), y: Math.min(y, this.box.height - 6) - 12, "text-anchor": "middle", class: "halo", style: "fill:var(--plane)" }, "span Φ");
    }

    vectors() {
      this.columns.forEach((c, j) => {
        const tip = scaled(c, this.arrow), [x, y] = this.screen(tip);
        this.arrowLine([0, 0, 0], tip, { stroke: "var(--plane)", "stroke-width": 2.2 });
        this.handle(`phi${j}`, `feature ${j + 1}`, [x, y], this.result.Phi.map((row) => row[j]), 5, "var(--plane)");
        make(this.svg, "text", { x: x + 9, y: y - 8, class: "halo", style: "fill:var(--plane)" }, `φ${sub(j + 1)}`);
      });
      const zero = this.screen([0, 0, 0]);
      make(this.svg, "circle", { cx: zero[0], cy: zero[1], r: 2.5, fill: "var(--soft)" });
      make(this.svg, "text", { x: zero[0] - 6, y: zero[1] + 14, "text-anchor": "end", class: "tick" }, "0");
    }

    arrowLine(p, q, attributes, head = 8) {
      this.line(p, q, attributes);
      const [x1, y1] = this.screen(p), [x2, y2] = this.screen(q), t = Math.atan2(y2 - y1, x2 - x1);
      if (Math.hypot(x2 - x1, y2 - y1) < head) return;
      const side = (turn) => `${x2 - head * Math.cos(t + turn)},${y2 - head * Math.sin(t + turn)}`;
      make(this.svg, "polygon", { points: `${x2},${y2} ${side(0.4)} ${side(-0.4)}`, fill: attributes.stroke, class: attributes.class ?? "", style: attributes.style ?? "" });
    }

    slant(m, strong) {
      const group = { class: "method", style: `--base:${this.looks[m.key].colour}`, stroke: m.stable === false ? "var(--bad)" : "var(--c)" };
      this.line(this.V, m.at, { ...group, "stroke-width": strong ? 3 : 1.2, "stroke-dasharray": m.key === "best" ? "none" : strong ? "none" : "5 4", opacity: strong ? 1 : 0.7 });
      if (m.key !== "best" || !(length(add(this.V, m.at, -1)) > 0)) return;
      // The right angle at the foot of the perpendicular.
      const up = unit(add(this.V, m.at, -1), [0, 0, 1]), k = 14 / (this.fitted * this.zoom);
      const out = this.flat ? unit(add(this.base[0], up, -dot(this.base[0], up)), this.base[1]) : this.base[0];
      this.corner(m.at, scaled(out, k), scaled(up, k), "var(--soft)");
    }

    corner(at, a, b, stroke) {
      const points = [add(at, a), add(add(at, a), b), add(at, b)].map((p) => this.screen(p).join(",")).join(" ");
      make(this.svg, "polyline", { points, fill: "none", stroke });
    }

    // span(L^T X) at V, the columns of L^T X and of X, and the right angle to the slant.
    normals(m) {
      const r = this.result, Z = multiply(transpose(r.L), m.X), k = 0.11 * this.box.width / (this.fitted * this.zoom);
      const style = `--base:${this.looks[m.key].colour}`, direct = (M, j) => unit(this.place(M.map((row, s) => (r.weight[s] > 0 ? row[j] / r.weight[s] : 0))), null);
      const down = unit(add(m.at, this.V, -1), null);
      if (this.flat && this.rank === 2 && this.seen.length === 3 && down) {
        const a = unit(add(this.base[0], down, -dot(this.base[0], down)), this.base[1]), b = cross(down, a);
        const at = (i, j) => add(add(this.V, a, 0.8 * i * k), b, 0.8 * j * k);
        this.polygon([at(-1, -1), at(1, -1), at(1, 1), at(-1, 1)], { class: "method", style, fill: "var(--c)", "fill-opacity": 0.13, stroke: "var(--c)", "stroke-opacity": 0.7 });
        const side = 13 / (this.fitted * this.zoom);
        this.corner(this.V, scaled(a, side), scaled(down, side), "var(--soft)");
      }
      if (r.d > 2) return;
      for (let j = 0; j < r.d; j++) for (const [M, name, width] of [[m.X, "X", 1.2], [Z, "LᵀX", 2.4]]) {
        const way = direct(M, j);
        if (!way) continue;
        const tip = add(this.V, way, k), [x, y] = this.screen(tip);
        this.arrowLine(this.V, tip, { class: "method", style, stroke: "var(--c)", "stroke-width": width, "stroke-dasharray": name === "X" ? "3 3" : "none" }, 7);
        make(this.svg, "text", { x: x + 4, y: y - 3, class: "tick halo" }, name + sub(j + 1));
      }
    }

    point(m, strong) {
      const [x, y] = this.screen(m.at), look = this.looks[m.key];
      const inside = x > -20 && y > -20 && x < this.box.width + 20 && y < this.box.height + 20;
      if (!inside) return;
      const dot = mark(this.svg, look, x, y, strong ? 8 : 5.5, m.stable === false);
      dot.style.cursor = "pointer";
      make(dot, "title", {}, `${look.label}: ${m.stable === false ? "unstable, " : ""}${Plots.three(m.ratio)} × best`);
      dot.addEventListener("click", () => this.onChoose(m.key));
      this.label(look.label, [x, y], strong || m.key === "best", strong ? "13.5px" : "12px", m.stable === false);
    }

    // Text beside a point where it covers no other; less important ones are left out.
    label(text, [x, y], must, size, bad = false) {
      const wide = 6.6 * text.length + 4, tall = 15, places = [[11, 4], [-11 - wide, 4], [-wide / 2, -12], [-wide / 2, 22], [11, -10], [11, 18], [-11 - wide, -10], [-11 - wide, 18]];
      const free = places.map(([dx, dy]) => [x + dx, y + dy]).find(([a, b]) => a > 2 && a + wide < this.box.width - 2 && b > 12 && b < this.box.height - 2 &&
        this.boxes.every(([p, q, w]) => a + wide < p || p + w < a || Math.abs(b - q) > tall));
      if (!free && !must) return;
      const at = free || [x + 11, y + 4];
      this.boxes.push([at[0], at[1], wide]);
      make(this.svg, "text", { x: at[0], y: at[1], class: "halo", style: `font-size:${size};${must ? "font-weight:600;" : ""}${bad ? "fill:var(--bad)" : ""}` }, text);
    }

    handle(name, label, [x, y], values, radius, fill = "var(--ink)") {
      const told = values.map((v) => Plots.short(v)).join(", ");
      const group = make(this.svg, "g", {
        class: `handle${this.held === name ? " held" : ""}`, tabindex: 0, role: "slider", "data-handle": name, "aria-label": `${label}: arrow keys move it, Page Up and Page Down move it in depth`,
        "aria-valuenow": Number(values[0].toPrecision(6)), "aria-valuetext": told, transform: `translate(${x},${y})`,
      });
      make(group, "circle", { class: "ring", r: 20 });
      make(group, "circle", { r: radius, fill, stroke: "var(--panel)", "stroke-width": 1.5 });
    }

    // -- hands --------------------------------------------------------------------------------------

    move(name, dx, dy, depth = 0) {
      const { right, up, away } = this.axes(), k = 1 / (this.fitted * this.zoom);
      const way = add(add(scaled(right, dx * k), up, -dy * k), away, depth * k);
      const change = this.unplace(name === "V" ? way : scaled(way, 1 / this.arrow));
      this.onMove(name, change);
    }

    listen() {
      const svg = this.svg, touches = new Map();
      svg.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        touches.set(event.pointerId, [event.clientX, event.clientY]);
        this.held = event.target.closest(".handle") ? this.nearest(event) : null;
        if (this.held) { event.preventDefault(); svg.querySelector(`[data-handle="${this.held}"]`).focus({ preventScroll: true }); }
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointermove", (event) => {
        const before = touches.get(event.pointerId);
        if (!before) return;
        const now = [event.clientX, event.clientY], dx = now[0] - before[0], dy = now[1] - before[1];
        if (touches.size === 2) {
          const [other] = [...touches].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
          this.scale(Math.hypot(now[0] - other[0], now[1] - other[1]) / (Math.hypot(before[0] - other[0], before[1] - other[1]) || 1));
        } else if (this.held) this.move(this.held, dx, dy);
        else this.turn(dx * 0.008, dy * 0.006);
        touches.set(event.pointerId, now);
      });
      const end = (event) => {
        if (!touches.delete(event.pointerId)) return;
        const held = this.held;
        this.held = null;
        if (held) this.onMove(held, null);
      };
      svg.addEventListener("pointerup", end);
      svg.addEventListener("pointercancel", end);
      svg.addEventListener("wheel", (event) => { if (event.ctrlKey) { event.preventDefault(); this.scale(Math.exp(-event.deltaY / 300)); } }, { passive: false });
      svg.addEventListener("keydown", (event) => this.key(event));
    }

    // Rings overlap where handles are close: what is meant is the one whose middle is nearest.
    nearest({ clientX, clientY }) {
      const away = (handle) => { const box = handle.getBoundingClientRect(); return Math.hypot(clientX - box.x - box.width / 2, clientY - box.y - box.height / 2); };
      return [...this.svg.querySelectorAll(".handle")].sort((a, b) => away(a) - away(b))[0].dataset.handle;
    }

    turn(yaw, pitch) { this.yaw -= yaw; this.pitch = Math.min(1.5, Math.max(-1.5, this.pitch + pitch)); this.draw(); }
    scale(by) { this.zoom = Math.min(40, Math.max(0.2, this.zoom * by)); this.draw(); }

    key(event) {
      const name = event.target.dataset?.handle, far = event.shiftKey ? 24 : 6;
      const ways = { ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowUp: [0, -1, 0], ArrowDown: [0, 1, 0], PageUp: [0, 0, 1], PageDown: [0, 0, -1] };
      const way = ways[event.key];
      if (name && way) this.move(name, far * way[0], far * way[1], far * way[2]);
      else if (way && !way[2]) this.turn(way[0] * 0.08, way[1] * 0.08);
      else if (event.key === "+" || event.key === "=") this.scale(1.15);
      else if (event.key === "-") this.scale(1 / 1.15);
      else return;
      event.preventDefault();
    }
  };
})();
