// The two plots beside the geometry: eigenvalues in the plane, expected errors over time.
"use strict";

const Plots = (() => {
  const NS = "http://www.w3.org/2000/svg";

  function make(parent, name, attributes = {}, text = null) {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    parent.append(element);
    return element;
  }

  // Marks as matplotlib names them, in a square from -1 to 1.
  const MARKS = {
    o: "M1,0A1,1 0 1,1 -1,0A1,1 0 1,1 1,0Z", s: "M-.9,-.9H.9V.9H-.9Z", D: "M0,-1.2L1,0L0,1.2L-1,0Z",
    "^": "M0,-1.1L1.05,.85H-1.05Z", v: "M0,1.1L1.05,-.85H-1.05Z",
    P: "M-.4,-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
    X: "M-1.1,-.6L-.6,-1.1L0,-.5L.6,-1.1L1.1,-.6L.5,0L1.1,.6L.6,1.1L0,.5L-.6,1.1L-1.1,.6L-.5,0Z",
    "*": "M0,-1.35L.33,-.42L1.28,-.42L.53,.16L.8,1.09L0,.54L-.8,1.09L-.53,.16L-1.28,-.42L-.33,-.42Z",
  };

  function mark(parent, look, x, y, size, hollow = false) {
    const group = make(parent, "g", { class: "method", style: `--base:${look.colour}`, transform: `translate(${x},${y}) scale(${size})` });
    make(group, "path", {
      d: MARKS[look.marker] || MARKS.o, fill: hollow ? "var(--panel)" : "var(--c)",
      stroke: hollow ? "var(--bad)" : "var(--panel)", "stroke-width": (hollow ? 2 : 1) / size,
    });
    return group;
  }

  const clear = (svg) => { svg.replaceChildren(); const box = svg.getBoundingClientRect(); svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`); return box; };
  const raised = (k) => String(k).replace(/[-\d]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
  const power = (x) => { const [digits, k] = x.toExponential(0).split("e"); return `${digits} · 10${raised(Number(k))}`; };
  // For ticks: as few digits as can be. For results: three digits, and 0 for what is rounding.
  const short = (x) => (Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-3) ? power(x) : String(Number(x.toPrecision(3)))).replace("-", "−");
  const three = (x) => {
    const size = Math.abs(x);
    if (size < 1e-9) return "0";
    if (size >= 1e5 || size < 1e-3) return power(x).replace("-", "−");
    return (size >= 1000 ? x.toFixed(0) : x.toPrecision(3)).replace("-", "−");
  };

  // Roots with a sign keep small eigenvalues apart and every sign as it is.
  function spectrum(svg, methods, looks, chosen) {
    const { width, height } = clear(svg), pad = { left: 40, right: 14, top: 12, bottom: 30 };
    if (width < 100) return; // not laid out yet
    const learners = methods.filter((m) => m.kind === "learner" && m.eigen.length);
    const all = learners.flatMap((m) => m.eigen).filter((z) => Number.isFinite(z[0]));
    const bend = (x) => Math.sign(x) * Math.sqrt(Math.abs(x));
    const right = Math.max(1e-6, ...all.map((z) => z[0])), left = Math.max(0.1 * right, ...all.map((z) => -z[0]));
    const up = Math.max(0.02 * right, ...all.map((z) => Math.abs(z[1])));
    const span = bend(right) * 1.08 + bend(left) * 1.15;
    const x = (v) => pad.left + ((bend(v) + bend(left) * 1.15) / span) * (width - pad.left - pad.right);
    const y = (v) => pad.top + (0.5 - bend(v) / (2.3 * bend(up))) * (height - pad.top - pad.bottom);
    make(svg, "rect", { x: pad.left, y: pad.top, width: x(0) - pad.left, height: height - pad.top - pad.bottom, fill: "var(--bad)", opacity: 0.12 });
    make(svg, "line", { x1: x(0), x2: x(0), y1: pad.top, y2: height - pad.bottom, stroke: "var(--bad)" });
    make(svg, "line", { x1: pad.left, x2: width - pad.right, y1: y(0), y2: y(0), class: "axis" });
    for (const v of new Set([0, right / 9, right / 2, right, ...(left > 0.2 * right ? [-left] : [])].map((t) => Number(t.toPrecision(1)))))
      if (x(v) < width - 4) make(svg, "text", { x: x(v), y: height - 12, "text-anchor": "middle", class: "tick" }, short(v));
    for (const v of up > 0.03 * right ? [Number(up.toPrecision(1)), -Number(up.toPrecision(1))] : [])
      make(svg, "text", { x: pad.left - 5, y: y(v) + 4, "text-anchor": "end", class: "tick" }, `${short(v)}i`);
    make(svg, "text", { x: pad.left + 4, y: pad.top + 14, class: "tick" }, "unstable");
    for (const m of [...learners].sort((a, b) => (a.key === chosen) - (b.key === chosen)))
      for (const z of m.eigen) if (Number.isFinite(z[0])) {
        const bad = z[0] <= 0 && !m.stable, dot = mark(svg, looks[m.key], x(z[0]), y(z[1]), m.key === chosen ? 7 : 4.5);
        if (m.key !== chosen) dot.setAttribute("opacity", 0.75);
        if (bad) { dot.firstChild.setAttribute("fill", "var(--bad)"); dot.classList.add("bad"); }
        make(dot, "title", {}, `${looks[m.key].label}: ${short(z[0])}${z[1] ? ` ${z[1] < 0 ? "−" : "+"} ${short(Math.abs(z[1]))}i` : ""}`);
      }
    const bad = learners.filter((m) => !m.stable).map((m) => looks[m.key].label);
    svg.setAttribute("aria-label", `Eigenvalues. Unstable: ${bad.join(", ") || "none"}.`);
  }

  function curves(svg, result, looks, chosen) {
    const { width, height } = clear(svg), pad = { left: 46, right: 12, top: 10, bottom: 34 };
    if (width < 100) return; // not laid out yet
    const learners = result.methods.filter((m) => m.kind === "learner" && m.path.length);
    const first = learners.length ? learners[0].path[0] : 1, least = result.bestRmse;
    const ends = learners.flatMap((m) => m.path.filter((v, t) => v > 0 && (t === m.path.length - 1 || t === 0)));
    const high = Math.log10(Math.max(1.3 * first, 3 * least, ...ends.filter((v) => v < 10 * first)) * 1.1 || 1);
    const low = Math.log10(Math.max(least > 0 ? 0.8 * least : 0, Math.min(...ends, first) * 0.8, first * 1e-4) || 1e-3);
    const x = (t) => pad.left + (Math.log10(t + 1) / Math.log10(Theory.STEPS + 1)) * (width - pad.left - pad.right);
    const y = (v) => pad.top + ((high - Math.log10(v)) / (high - low || 1)) * (height - pad.top - pad.bottom);
    for (const t of [0, 1, 10, 100, 1000]) {
      make(svg, "line", { x1: x(t), x2: x(t), y1: pad.top, y2: height - pad.bottom, class: "axis", opacity: 0.6 });
      make(svg, "text", { x: x(t), y: height - 18, "text-anchor": t === 1000 ? "end" : "middle", class: "tick" }, t === 1000 ? "1,000 steps" : t);
    }
    for (const v of ticks(low, high)) {
      make(svg, "line", { x1: pad.left, x2: width - pad.right, y1: y(v), y2: y(v), class: "axis", opacity: 0.6 });
      make(svg, "text", { x: pad.left - 6, y: y(v) + 4, "text-anchor": "end", class: "tick" }, short(v));
    }
    const clip = make(make(svg, "clipPath", { id: "inside" }), "rect", { x: pad.left, y: pad.top, width: width - pad.left - pad.right, height: height - pad.top - pad.bottom });
    clip.setAttribute("rx", 2);
    if (least > 0) make(svg, "line", { x1: pad.left, x2: width - pad.right, y1: y(least), y2: y(least), stroke: "var(--ink)", "stroke-dasharray": "5 4" });
    for (const m of [...learners].sort((a, b) => (a.key === chosen) - (b.key === chosen))) {
      const points = m.path.flatMap((v, t) => (t < 30 || t === m.path.length - 1 || Math.floor(30 * Math.log(t)) > Math.floor(30 * Math.log(t - 1)) ? [[x(t), y(Math.min(Math.max(v, 1e-300), 1e13))]] : []));
      const group = make(svg, "g", { class: "method", style: `--base:${looks[m.key].colour}`, "clip-path": "url(#inside)" });
      const line = make(group, "polyline", {
        points: points.map((p) => p.map((c) => c.toFixed(1)).join(",")).join(" "), fill: "none", stroke: "var(--c)",
        "stroke-width": m.key === chosen ? 3.5 : 1.6, "stroke-dasharray": looks[m.key].dash, opacity: m.key === chosen ? 1 : 0.8,
      });
      make(line, "title", {}, looks[m.key].label);
    }
    const told = learners.map((m) => `${looks[m.key].label} ${short(m.path.at(-1))}`);
    svg.setAttribute("aria-label", `Expected RMSE after ${Theory.STEPS} steps: ${told.join(", ")}; the best is ${short(least)}.`);
  }

  function ticks(low, high) {
    const found = [];
    for (let k = Math.floor(low); k <= Math.ceil(high); k++) for (const m of high - low < 1.3 ? [1, 2, 5] : [1]) found.push(m * 10 ** k);
    return found.filter((v) => Math.log10(v) >= low && Math.log10(v) <= high);
  }

  return { make, mark, clear, short, three, spectrum, curves };
})();
