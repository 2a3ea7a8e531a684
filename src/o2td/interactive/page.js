// The page: its state, its controls, and what is written about the result.
"use strict";

(() => {
  const problems = JSON.parse(document.getElementById("problems").textContent);
  const find = (id) => document.getElementById(id);
  const short = (x) => (x === null ? "–" : x === Infinity ? "∞" : Number.isFinite(x) ? Plots.three(x) : "–");
  const copy = (table) => table.map((row) => row.slice());
  const looks = Object.fromEntries(problems.methods.map((m) => [m.key, { ...m, dash: { "-": "none", "--": "7 4", "-.": "7 3 2 3", ":": "2 3" }[m.dash] }]));
  let state, result, chosen = "td";

  // -- state ----------------------------------------------------------------------------------------

  function begin(index) {
    const base = problems.problems[index];
    state = {
      index, base, phi: copy(base.phi), behavior: copy(base.behavior), target: copy(base.target),
      shift: new Array(base.states).fill(0), gamma: highest(base), trace: 0, alpha: null, mix: 0,
    };
  }

  const highest = (base) => Math.max(...base.pairs.map((pair) => pair[5]));

  // The problem as it stands: discounts rescaled, rewards shifted by state.
  function current() {
    const { base } = state, top = highest(base);
    const pairs = base.pairs.map(([s, a, t, p, r, g]) => ({
      s, a, t, p, r: r + state.shift[s],
      g: base.terminal[t] ? 0 : top > 0 ? (state.gamma === top ? g : (g * state.gamma) / top) : state.gamma,
    }));
    return { ...base, phi: state.phi, behavior: state.behavior, target: state.target, pairs };
  }

  // V is moved by moving the expected reward of every state: R = L V.
  function value(V) {
    const R = V.map((v, s) => v - Linear.dot(result.P[s], V));
    R.forEach((r, s) => { if (result.active[s]) state.shift[s] += r - result.R[s]; });
  }

  function step() {
    const trial = Theory.analyze(current(), state.trace, 0.1);
    const bounds = (trial.methods || []).filter((m) => m.stable && m.maxStep > 0 && Number.isFinite(m.maxStep)).map((m) => m.maxStep);
    state.alpha = bounds.length ? Number((0.5 * Math.min(...bounds)).toPrecision(2)) : 0.1;
    state.alpha = 10 ** (Math.round(Math.log10(Math.min(30, Math.max(1e-3, state.alpha))) / 0.02) * 0.02);
  }

  // -- redraw ---------------------------------------------------------------------------------------

  const stage = new Stage(find("stage"), (name, change) => {
    if (!change) { render(false); keep(); return; }
    if (name === "V") value(result.V.map((v, s) => v + change[s]));
    else { const j = Number(name.slice(3)); state.phi = state.phi.map((row, s) => row.map((x, k) => (k === j ? x + change[s] : x))); }
    render(true);
  }, choose);

  function render(held = false) {
    const found = Theory.analyze(current(), state.trace, state.alpha);
    if (found.failure) { find("caption").textContent = found.failure; return; }
    result = found;
    stage.update(result, looks, chosen, held);
    Plots.spectrum(find("spectrum"), result.methods, looks, chosen);
    Plots.curves(find("curves"), result, looks, chosen);
    table();
    controls();
    caption();
    if (!held) { entries(); python(); }
  }

  function choose(key) { chosen = key; render(); }

  function table() {
    const body = document.querySelector("#methods tbody"), focused = document.activeElement?.dataset?.key;
    body.replaceChildren(...result.methods.map((m) => {
      const row = document.createElement("tr"), name = document.createElement("button"), icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      row.dataset.key = m.key;
      row.className = `${m.key === chosen ? "chosen " : ""}${m.stable === false ? "unstable" : ""}`;
      icon.setAttribute("viewBox", "-8 -8 16 16");
      Plots.mark(icon, looks[m.key], 0, 0, 5.5, m.stable === false);
      Object.assign(name, { type: "button", className: "name" });
      name.dataset.key = m.key;
      name.setAttribute("aria-pressed", String(m.key === chosen));
      name.style.cssText = "color:inherit;background:none";
      name.append(icon, looks[m.key].label);
      const cells = [[[name]], [short(m.rmse), m.rmse, "rmse"], [short(m.ratio), m.ratio, "ratio"], [short(m.amplification), m.amplification, "amplification"],
        [eigen(m), m.stable, "stable"], [m.kind === "learner" ? short(m.maxStep) : "–", m.maxStep, "maxStep"]];
      for (const [shown, exact, what] of cells) {
        const cell = document.createElement("td");
        cell.append(...(Array.isArray(shown) ? shown : [shown]));
        if (what) cell.dataset.what = what;
        if (exact !== undefined && exact !== null) cell.dataset.value = String(exact);
        row.append(cell);
      }
      row.addEventListener("click", () => choose(m.key));
      return row;
    }));
    if (focused) body.querySelector(`button[data-key="${focused}"]`)?.focus({ preventScroll: true });
  }

  // The eigenvalue with the smallest real part, red where it drives the learner away.
  function eigen(m) {
    if (m.kind !== "learner" || !m.eigen.length) return ["–"];
    const least = [...m.eigen].sort((a, b) => a[0] - b[0]).find((z) => z[1] >= 0 && (Math.hypot(...z) > 0 || !m.stable)) ?? [0, 0];
    const text = document.createElement("span"), pair = least[1] > 1e-12 * Math.hypot(...least);
    text.textContent = `${pair ? `${short(least[0])} ± ${short(least[1])}i` : short(least[0])}${m.stable ? "" : ", unstable"}`;
    if (!m.stable) text.className = "bad";
    return [text];
  }

  function caption() {
    const m = result.methods.find((one) => one.key === chosen), name = looks[chosen].label, words = [];
    const exact = result.bestRmse < 1e-9 * (Math.hypot(...result.V) || 1), far = exact ? "" : `, ${short(m.ratio)} times as far from V as the best point`;
    if (exact) words.push("The features can express V: there is nothing to project, and the best error is 0.");
    if (chosen === "best") words.push(`The best point is the foot of the perpendicular: RMSE ${short(m.rmse)}. Choose another method to see its slant.`);
    else if (!m.theta) words.push(`${name} has no fixed point here.`);
    else if (m.stable === false) words.push(`${name} is unstable: every step size leads away from its fixed point${far}.`);
    else words.push(exact ? `${name} lands on it with RMSE ${short(m.rmse)}.` : `${name} lands ${short(m.ratio)} times as far from V as the best point.`);
    if (!exact && m.X && chosen !== "best" && Number.isFinite(m.amplification)) {
      const angle = (Math.acos(Math.min(1, 1 / m.amplification)) * 180) / Math.PI;
      words.push(`Its slant is orthogonal to span(LᵀX), which is tilted by ${angle.toFixed(1)}° from span Φ; 1 / cos = ${short(m.amplification)} is the worst ratio over all rewards.`);
    } else if (!m.X && chosen.startsWith("o2td")) words.push("This reading has no direction X: it is no projection of V.");
    else if (chosen === "sotd") words.push("With more states than features it is the unweighted Bellman-residual minimiser.");
    find("caption").textContent = words.join(" ");
    find("shadow").textContent = stage.flat ? "" : `This problem has ${result.weight.filter((w) => w > 0).length} visited states and ${result.d} features: the picture shows three directions of that space, the perpendicular from V and the two along which the landing points differ most.`;
  }

  // -- controls -------------------------------------------------------------------------------------

  function controls() {
    const put = (id, at, text) => { if (document.activeElement !== find(id) || id === "problem") find(id).value = at; find(`${id}-out`).textContent = text; find(id).setAttribute("aria-valuetext", text); };
    put("trace", state.trace, state.trace.toFixed(2));
    put("gamma", state.gamma, state.gamma.toFixed(2));
    put("alpha", Math.log10(state.alpha), short(state.alpha));
    put("mix", state.mix, `${Math.round(100 * state.mix)} %`);
    const action = Number(find("action").value);
    document.querySelectorAll("#policy tr").forEach((row) => {
      const s = Number(row.dataset.state);
      for (const who of ["behavior", "target"]) {
        const input = row.querySelector(`input.${who}`), p = state[who][s][action];
        if (document.activeElement !== input) input.value = p;
        input.nextSibling.textContent = p.toFixed(2);
        input.setAttribute("aria-valuetext", p.toFixed(2));
      }
      row.lastChild.textContent = short(result.xi[s]);
    });
  }

  function policies() {
    const { base } = state, body = find("policy");
    find("policies").parentElement.hidden = base.actions < 2;
    find("which").textContent = base.actions === 2 ? "The probability of action 0; action 1 has the rest." : "Other actions keep their proportions.";
    find("action-row").hidden = base.actions < 3;
    find("mix").parentElement.hidden = base.actions < 2;
    find("action").replaceChildren(...Array.from({ length: base.actions }, (_, a) => new Option(String(a), String(a))));
    body.replaceChildren();
    for (let s = 0; s < base.states; s++) {
      if (base.terminal[s]) continue;
      const row = body.insertRow();
      row.dataset.state = s;
      row.insertCell().textContent = s;
      for (const who of ["behavior", "target"]) {
        const cell = document.createElement("div"), input = document.createElement("input"), shown = document.createElement("output");
        Object.assign(input, { type: "range", step: 0.01, className: who });
        [input.min, input.max] = who === "behavior" ? [0.01, 0.99] : [0, 1];
        input.disabled = who === "target" && base.target[s].every((p) => p === 0);
        input.setAttribute("aria-label", `${who === "behavior" ? "behaviour" : "target"} in state ${s}`);
        input.addEventListener("input", () => { policy(who, s, Number(input.value)); render(); keep(); });
        cell.className = "cell";
        cell.append(input, shown);
        row.insertCell().append(cell);
      }
      row.insertCell();
    }
  }

  // One action's probability; the others keep their proportions. The behaviour keeps some of what the target takes.
  function policy(who, s, p) {
    const a = Number(find("action").value), row = state[who][s], rest = 1 - row[a], others = state.base.actions - 1;
    state[who] = copy(state[who]);
    state[who][s] = row.map((q, k) => (k === a ? p : rest > 0 ? (q * (1 - p)) / rest : (1 - p) / others));
    if (state.target[s].some((q, k) => q > 0 && state.behavior[s][k] <= 0)) {
      const mixed = state.behavior[s].map((q, k) => (state.target[s][k] > 0 && q <= 0 ? 0.01 : q)), sum = mixed.reduce((x, y) => x + y, 0);
      state.behavior = copy(state.behavior);
      state.behavior[s] = mixed.map((q) => q / sum);
    }
  }

  function mix(share) {
    state.mix = share;
    state.behavior = state.base.behavior.map((row, s) => (state.target[s].some((p) => p > 0) ? row.map((b, a) => (1 - share) * b + share * state.target[s][a]) : row.slice()));
  }

  function entries() {
    const d = state.phi[0].length, head = document.createElement("tr");
    if (find("entries").contains(document.activeElement)) return;
    head.append(...["state", "V", ...state.phi[0].map((_, j) => `φ${j + 1}`)].map((text) => Object.assign(document.createElement("th"), { textContent: text, scope: "col" })));
    find("entries-head").replaceChildren(head);
    find("entries").replaceChildren(...state.phi.flatMap((row, s) => {
      if (state.base.terminal[s]) return [];
      const line = document.createElement("tr");
      line.insertCell().textContent = s;
      for (let k = -1; k < d; k++) {
        const input = Object.assign(document.createElement("input"), { type: "number", step: "any", value: Number((k < 0 ? result.V[s] : row[k]).toPrecision(6)) });
        input.setAttribute("aria-label", k < 0 ? `V in state ${s}` : `feature ${k + 1} in state ${s}`);
        input.addEventListener("change", () => {
          const x = Number(input.value);
          if (!Number.isFinite(x) || input.value === "") return;
          if (k < 0) value(result.V.map((v, t) => (t === s ? x : v)));
          else { state.phi = copy(state.phi); state.phi[s][k] = x; }
          render(); keep();
        });
        line.insertCell().append(input);
      }
      return [line];
    }));
  }

  function python() {
    const p = current(), list = (table) => `[${table.map((row) => `[${row.join(", ")}]`).join(", ")}]`, more = [];
    if (p.terminal.some(Boolean)) more.push(`    terminal=[${p.terminal.flatMap((yes, s) => (yes ? [s] : [])).join(", ")}],`);
    if (p.terminal.some(Boolean)) more.push(`    start=[${p.start.join(", ")}],`);
    if (p.interest.some((i) => i !== 1)) more.push(`    interest=[${p.interest.join(", ")}],`);
    if (p.initial_theta) more.push(`    initial_theta=[${p.initial_theta.join(", ")}],`);
    find("python").textContent = [
      "import numpy as np", "import o2td", "from o2td import exact", "",
      "rows = [  # state, action, next state, probability, reward, discount",
      ...p.pairs.map((q) => `    (${[q.s, q.a, q.t, q.p, q.r, q.g].join(", ")}),`), "]",
      `P, r, g = np.zeros((3, ${p.states}, ${p.actions}, ${p.states}))`,
      "for s, a, t, *numbers in rows:", "    P[s, a, t], r[s, a, t], g[s, a, t] = numbers",
      ...(p.terminal.some(Boolean) ? [`P[${JSON.stringify(p.terminal.flatMap((yes, s) => (yes ? [s] : [])))}, :, 0] = 1.0  # where terminal states lead does not matter`] : []),
      "problem = o2td.Problem(", "    P, r, g,", `    behavior=${list(p.behavior)},`, `    target=${list(p.target)},`, `    features=${list(p.phi)},`, ...more, ")",
      `print(exact.fixed_point(problem, o2td.TD(trace=${state.trace})))`,
    ].join("\n");
  }

  // -- a link that brings all of it back ------------------------------------------------------------

  function keep() {
    const { index, phi, behavior, target, shift, gamma, trace, alpha } = state;
    history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify({ index, phi, behavior, target, shift, gamma, trace, alpha, chosen }))}`);
  }

  function restore() {
    let kept;
    try { kept = JSON.parse(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    const table = (x, rows, columns) => Array.isArray(x) && x.length === rows && x.every((row) => Array.isArray(row) && row.length === columns && row.every(Number.isFinite));
    if (!kept || !problems.problems[kept.index]) return;
    begin(kept.index);
    const { states, actions, phi } = state.base;
    if (table(kept.phi, states, phi[0].length)) state.phi = kept.phi;
    for (const who of ["behavior", "target"]) if (table(kept[who], states, actions)) state[who] = kept[who];
    if (table([kept.shift], 1, states)) state.shift = kept.shift;
    for (const name of ["gamma", "trace"]) if (kept[name] >= 0 && kept[name] <= 1) state[name] = kept[name];
    if (kept.alpha > 0 && kept.alpha < 100) state.alpha = kept.alpha;
    if (looks[kept.chosen]) chosen = kept.chosen;
  }

  function open() {
    find("problem").value = state.index;
    find("gamma").max = Math.max(0.99, highest(state.base));
    policies();
    if (state.alpha === null) step();
    stage.reset();
    render();
  }

  function clipboard(button, text) {
    const told = button.textContent, done = (words) => { button.textContent = words; setTimeout(() => { button.textContent = told; }, 1500); };
    (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => done("Copied"), () => done("Copy it from the address bar"));
  }

  problems.problems.forEach((p, k) => find("problem").append(new Option(p.name, k)));
  find("choose").hidden = problems.problems.length < 2;
  find("problem").addEventListener("change", () => { begin(Number(find("problem").value)); open(); history.replaceState(null, "", location.pathname); });
  find("reset").addEventListener("click", () => { begin(state.index); chosen = "td"; open(); history.replaceState(null, "", location.pathname); });
  find("link").addEventListener("click", () => { keep(); clipboard(find("link"), location.href); });
  find("copy").addEventListener("click", () => clipboard(find("copy"), find("python").textContent));
  find("trace").addEventListener("input", () => { state.trace = Number(find("trace").value); render(); keep(); });
  find("gamma").addEventListener("input", () => { state.gamma = Number(find("gamma").value); render(); keep(); });
  find("alpha").addEventListener("input", () => { state.alpha = 10 ** Number(find("alpha").value); render(); keep(); });
  find("mix").addEventListener("input", () => { mix(Number(find("mix").value)); render(); keep(); });
  find("action").addEventListener("change", () => render());
  for (const focus of ["whole", "near"]) find(focus).addEventListener("click", () => {
    Object.assign(stage, { focus, zoom: 1 });
    for (const id of ["whole", "near"]) find(id).setAttribute("aria-pressed", String(id === focus));
    render();
  });
  find("in").addEventListener("click", () => stage.scale(1.25));
  find("out").addEventListener("click", () => stage.scale(0.8));
  new ResizeObserver(() => { if (result) render(); }).observe(document.body);
  window.o2td = { problem: () => current(), results: () => result, settings: () => ({ trace: state.trace, gamma: state.gamma, alpha: state.alpha, chosen }) };
  begin(0);
  restore();
  open();
})();
