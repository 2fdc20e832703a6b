"use strict";
// Asks /status and /history and shows them. Names and messages are only ever set as text, never as markup.
(() => {
  const POLL = 3000, POLL_SLOW = 10000, POLL_HIDDEN = 30000, AGAIN = 1000, TIMEOUT = 10000, HISTORY_EVERY = 15000;
  const SILENCE = 600; // seconds without a turn of the service's loop, as /livez has it
  const RATE_SLOTS = 4; // two minutes of history
  const SHOWN = 5; // tables in trouble that are told of before one has to ask for more
  const PAGE = 100; // rows that are drawn before one scrolls on: a thousand at once are slow on a phone
  const STATES = { halted: "Halted", retrying: "Retrying", paused: "Paused", catching_up: "Catching up", starting: "Starting", running: "Running" };
  const RANK = Object.fromEntries(Object.keys(STATES).map((state, i) => [state, i]));
  // id: label, the value it sorts by, the direction that tells most
  const COLUMNS = {
    table: ["Table", (r) => r.name, "asc"],
    state: ["State", (r) => RANK[r.table.state] ?? 9, "asc"],
    lag: ["Lag", (r) => r.table.lag_records, "desc"],
    rate: ["Throughput", (r) => r.rate, "desc"],
    freshness: ["Freshness", (r) => r.table.freshness_seconds, "desc"],
    commit: ["Last commit", (r) => r.table.last_commit_at, "desc"],
    quarantined: ["Quarantined", (r) => r.table.quarantined, "desc"],
    ghosts: ["Ghosts", (r) => r.table.ghosts, "desc"],
  };
  const NUMBERS = ["lag", "rate", "freshness", "commit", "quarantined", "ghosts"];

  const $ = (id) => document.getElementById(id);
  const view = { words: "", state: "", sort: "state", dir: "asc", all: false, rows: PAGE };
  const rows = new Map();
  let history = { step_seconds: 30, points: 60, tables: {} };
  let status = null, answeredAt = null, failures = 0, historyAt = -Infinity, told = "";

  // --- words and numbers
  const collator = new Intl.Collator("en", { numeric: true });
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
  const count = (n) => (n >= 1e7 ? short : whole).format(n);
  const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many ?? one + "s"}`;
  const rateText = (n) => (n === 0 ? "0" : n < 10 ? n.toFixed(1) : count(n));
  function duration(s) {
    if (s < 10) return `${s.toFixed(1)} s`;
    if (s < 60) return `${Math.round(s)} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
  }
  const ago = (s) => (s < 1 ? "just now" : s < 60 ? `${Math.floor(s)} s ago` : `${duration(s)} ago`);
  const moment = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";

  // --- nodes
  function make(tag, props = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
      if (name === "class") node.className = value;
      else if (name in node && typeof value === "function") node[name] = value;
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }
  function say(node, text) { if (node.textContent !== text) node.textContent = text; }
  function stagesText(stages) {
    const parts = [["to_connector", "to the connector"], ["to_kafka", "from there to Kafka"], ["to_table", "from there to the table"]];
    return parts.map(([id, words]) => `${words}: ${stages[id] === null ? "not known" : duration(stages[id])}`).join(", ");
  }
  function attribute(node, name, value) {
    if (value === null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  const total = (name) => document.querySelector(`[data-total="${name}"]`);

  // --- curves
  const SVG = "http://www.w3.org/2000/svg";
  function curve() {
    const svg = document.createElementNS(SVG, "svg");
    const paths = ["base", "area", "line"].map((kind) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("class", kind);
      svg.append(path);
      return path;
    });
    for (const [name, value] of [["role", "img"], ["preserveAspectRatio", "none"]]) svg.setAttribute(name, value);
    const text = make("span");
    return { node: make("div", { class: "curve" }, svg, text), text, svg, base: paths[0], area: paths[1], line: paths[2] };
  }
  function draw(curve, values, label) {
    const width = history.points - 1, points = values ?? [], top = Math.max(...points, 0);
    const y = (v) => (23 - (v / (top || 1)) * 21).toFixed(1);
    let line = "", area = "", before = null;
    points.forEach((value, x) => {
      if (value === null) { before = null; return; }
      line += before === null ? `M${x} ${y(value)}h.01` : `L${x} ${y(value)}`;
      before = x;
    });
    if (top > 0 && !points.includes(null)) area = `M0 23${points.map((v, x) => `L${x} ${y(v)}`).join("")}L${width} 23Z`;
    attribute(curve.svg, "viewBox", `0 0 ${width} 24`);
    attribute(curve.base, "d", `M0 23H${width}`);
    attribute(curve.line, "d", top > 0 ? line : "");
    attribute(curve.area, "d", area);
    attribute(curve.svg, "aria-label", label);
  }

  // --- one row per table, drawn when it is first seen
  function note(row, table) {
    row.table = table;
    row.words = `${table.table} ${table.topics.join(" ")} ${table.error?.code ?? ""}`.toLowerCase();
    const recent = history.tables[row.name]?.records.slice(-RATE_SLOTS) ?? [];
    // The last slot is not over yet: it counts for as long as it lasted so far.
    const over = RATE_SLOTS * history.step_seconds - Math.max(0, history.until - status.time);
    row.rate = recent.reduce((a, b) => a + b, 0) / Math.max(1, over);
  }
  function drawn(row) {
    const cell = (id, ...children) =>
      make("td", { role: "cell", class: `c-${id}${NUMBERS.includes(id) ? " number" : ""}`, "data-label": COLUMNS[id][0] }, ...children);
    const parts = { painted: null };
    for (const id of ["state", "lag", "commit", "quarantined", "ghosts"]) parts[id] = make("span", id === "state" ? { class: "state" } : {});
    parts.lagNote = make("small");
    parts.commitNote = make("small");
    parts.rate = curve();
    parts.freshness = curve();
    parts.node = make(
      "tr", { role: "row" },
      make("th", { scope: "row", role: "rowheader", class: "c-table", title: row.name }, row.name),
      cell("state", parts.state), cell("lag", parts.lag, parts.lagNote), cell("rate", parts.rate.node),
      cell("freshness", parts.freshness.node), cell("commit", parts.commit, parts.commitNote),
      cell("quarantined", parts.quarantined), cell("ghosts", parts.ghosts),
    );
    return parts;
  }
  function paint(row) {
    const parts = (row.parts ??= drawn(row)), table = row.table;
    if (parts.painted === table) return parts.node;
    parts.painted = table;
    if (parts.node.className !== table.state) parts.node.className = table.state;
    say(parts.state, STATES[table.state] ?? table.state);
    attribute(parts.state, "title", table.state === "paused" ? table.paused : null);
    say(parts.lag, count(table.lag_records));
    parts.lag.className = table.lag_records ? "" : "zero";
    say(parts.lagNote, table.lag_records && table.lag_seconds !== null ? duration(table.lag_seconds) : "");
    const at = table.last_commit_at, batch = table.last_batch;
    say(parts.commit, at === null ? "–" : ago(Math.max(0, status.time - at)));
    attribute(parts.commit, "title", at === null ? null : moment(at));
    say(parts.commitNote, batch === null ? "" : `${plural(batch.records, "record")}, ${duration(batch.seconds)}`);
    for (const id of ["quarantined", "ghosts"]) {
      say(parts[id], table[id] === null ? "–" : count(table[id]));
      parts[id].className = table[id] ? "alarm" : "zero";
    }
    attribute(parts.ghosts, "title", table.ghosts ? "rows that the last complete snapshot does not have" : null);
    const seen = history.tables[row.name], minutes = Math.round((history.points * history.step_seconds) / 60);
    const peak = seen ? Math.max(...seen.records) / history.step_seconds : 0, slowest = seen ? Math.max(...seen.freshness, 0) : 0;
    say(parts.rate.text, seen ? `${rateText(row.rate)}/s` : "–");
    draw(parts.rate, seen?.records, `Throughput, last ${minutes} minutes: at most ${rateText(peak)} records a second`);
    say(parts.freshness.text, table.freshness_seconds === null ? "–" : duration(table.freshness_seconds));
    attribute(parts.freshness.text, "title", table.stages && stagesText(table.stages));
    draw(parts.freshness, seen?.freshness, `Freshness, last ${minutes} minutes: at most ${duration(slowest)}`);
    return parts.node;
  }

  // --- what is wrong, and what to run
  function commandLine(command, before) {
    const code = make("code", {}, command);
    const line = make("div", { class: "run" }, before, code);
    if (navigator.clipboard) {
      const copy = make("button", { type: "button", class: "plain" }, "Copy");
      copy.onclick = () => navigator.clipboard.writeText(command).then(() => {
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy"; }, 2000);
      }, () => getSelection().selectAllChildren(code));
      line.append(copy);
    }
    return line;
  }
  function trouble(table) {
    const halted = table.state === "halted", item = make("li", { class: table.error ? table.state : "ghosts" });
    item.append(make("h3", {}, table.table));
    if (table.error) {
      item.append(make("span", { class: "what" }, STATES[table.state]), make("code", { class: "code" }, table.error.code));
      item.append(make("p", {}, table.error.message));
      if (table.error.fix) item.append(make("p", { class: "fix" }, `What to do: ${table.error.fix}`));
    } else {
      item.append(make("span", { class: "what" }, plural(table.ghosts, "ghost")));
      item.append(make("p", {}, "Rows that the last complete snapshot does not have."));
    }
    if (table.command) item.append(commandLine(table.command, halted ? "Then start it again:" : "To remove them:"));
    return item;
  }
  function showAttention(tables) {
    const rank = (t) => (t.state === "halted" ? 0 : t.error ? 1 : 2);
    const found = tables.filter((t) => t.error || t.ghosts)
      .sort((a, b) => rank(a) - rank(b) || collator.compare(a.table, b.table));
    const now = JSON.stringify([view.all, found.map((t) => [t.table, t.state, t.error, t.ghosts, t.command])]);
    if (now === told) return; // built anew only for news, so that a selection or the focus stays
    told = now;
    const shown = view.all ? found : found.slice(0, SHOWN);
    $("attention").hidden = !found.length;
    const counts = [["halted", 0], ["tried again", 1], ["with ghosts", 2]].map(([words, of]) => [found.filter((t) => rank(t) === of).length, words]);
    say($("attention-title"), "Needs attention: " + counts.filter(([n]) => n).map(([n, words]) => `${count(n)} ${words}`).join(", "));
    $("attention-list").replaceChildren(...shown.map(trouble));
    $("attention-more").hidden = found.length <= SHOWN;
    say($("attention-more"), view.all ? "Show fewer" : `Show all ${count(found.length)}`);
  }

  // --- the whole
  function showTotals(tables, now) {
    const sum = (value) => tables.reduce((n, t) => n + (value(t) ?? 0), 0);
    const worst = (value) => tables.reduce((w, t) => (value(t) > (w ? value(w) : 0) ? t : w), null);
    const behind = tables.filter((t) => t.lag_records > 0), old = worst((t) => t.lag_seconds), slow = worst((t) => t.freshness_seconds);
    const bad = worst((t) => t.quarantined);
    say(total("lag"), count(sum((t) => t.lag_records)));
    say(total("lag-note"), behind.length ? `records in ${plural(behind.length, "table")}${old ? `, up to ${duration(old.lag_seconds)}` : ""}` : "records");
    say(total("rate"), rateText([...rows.values()].reduce((n, r) => n + r.rate, 0)));
    say(total("freshness"), slow ? duration(slow.freshness_seconds) : "–");
    say(total("freshness-note"), slow ? `slowest: ${slow.table}` : "from the source to the table");
    say(total("quarantined"), count(sum((t) => t.quarantined)));
    say(total("quarantined-note"), bad ? `most: ${bad.table}` : "records");
    const transactions = status.transactions;
    $("transactions").hidden = !transactions;
    if (transactions) {
      const complete = transactions.complete, waiting = transactions.waiting_for;
      say(total("complete"), !complete ? "not known yet" : complete.ts_ms === null ? complete.id : ago(Math.max(0, now - complete.ts_ms / 1000)));
      attribute(total("complete"), "title", complete ? `transaction ${complete.id}` : null);
      const pending = transactions.pending ? `${count(transactions.pending)} pending` : "";
      const what = [pending, waiting.length ? `waits for ${waiting[0]}${waiting.length > 1 ? ` and ${waiting.length - 1} more` : ""}` : ""];
      say(total("complete-note"), what.filter(Boolean).join(", ") || "all tables together");
      attribute(total("complete-note"), "title", waiting.join(", ") || null);
    }
  }
  function verdict(tables) {
    const of = (state) => tables.filter((t) => t.state === state).length;
    if (status.seconds_since_beat > SILENCE) return ["bad", `The service's loop made no turn for ${duration(status.seconds_since_beat)}`];
    if (of("halted")) return ["bad", `${plural(of("halted"), "table")} halted`];
    if (!status.ready) return ["", "The service is starting"];
    if (of("retrying")) return ["warn", `${plural(of("retrying"), "table")} tried again`];
    if (!tables.length) return ["", "No tables yet"];
    if (of("paused")) return ["warn", `${plural(of("paused"), "table")} paused`];
    if (of("catching_up")) return ["good", `${plural(of("catching_up"), "table")} catching up`];
    return ["good", `${plural(tables.length, "table")}, all running`];
  }
  function show() {
    const tables = Object.values(status.tables), now = status.time;
    for (const name of rows.keys()) if (!Object.hasOwn(status.tables, name)) rows.delete(name);
    for (const table of tables) {
      if (!rows.has(table.table)) rows.set(table.table, { name: table.table });
      note(rows.get(table.table), table);
    }
    showTotals(tables, now);
    showAttention(tables);
    showStates(tables);
    const [kind, text] = verdict(tables), halted = tables.filter((t) => t.state === "halted").length;
    $("verdict").className = `verdict ${kind}`;
    say($("verdict"), text);
    document.title = halted ? `(${halted} halted) distributary` : "distributary";
    say($("version"), `distributary ${status.version}`);
    $("totals").hidden = $("tools").hidden = !tables.length;
    const { stream, config } = status;
    $("stream").hidden = !stream;
    if (stream) say($("stream"), `No new records for ${duration(Math.floor(now - stream.since))}: ${stream.message} (${stream.code}). What to do: ${stream.fix}.`);
    $("config").hidden = !config;
    if (config) say($("config"), [...config.faults.map((f) => `${f.file}:${f.line}: ${f.message} (${f.code}). What to do: ${f.fix || "mend it"}. What the file said before counts until the next start, which refuses it.`),
      ...(config.waiting.length ? [`Changed in the config, and counts from the next start on: ${config.waiting.join(", ")}.`] : [])].join(" "));
    arrange();
  }
  function tick() {
    $("gone").hidden = failures < 2;
    document.body.classList.toggle("stale", failures >= 2 && status !== null);
    if (failures >= 2) {
      const since = answeredAt && Math.max(0, (Date.now() - answeredAt) / 1000);
      const words = answeredAt ? `The service does not answer since ${new Date(answeredAt).toLocaleTimeString()} (${duration(Math.floor(since))}). What you see is from then.`
        : "The service does not answer.";
      say($("gone"), words);
      if (document.title[0] !== "⚠") document.title = `⚠ no answer · ${document.title}`;
      if (!status) { say($("verdict"), "No answer"); say($("empty-text"), "This page goes on by itself when the service answers."); }
    }
    if (status && answeredAt) say($("clock"), `up ${duration(status.time - status.started_at)} · as of ${new Date(answeredAt).toLocaleTimeString()}`);
  }

  // --- filter and sort
  function showStates(tables) {
    const box = $("states"), counts = { "": tables.length };
    for (const table of tables) counts[table.state] = (counts[table.state] ?? 0) + 1;
    for (const state of ["", ...Object.keys(STATES)]) {
      let button = box.querySelector(`[data-state="${state}"]`);
      if (!button) {
        button = make("button", { type: "button", "data-state": state });
        button.onclick = () => { view.state = state; changed(); };
        box.append(button);
      }
      say(button, `${state ? STATES[state] : "All"} ${count(counts[state] ?? 0)}`);
      button.hidden = !counts[state] && state !== "" && state !== view.state;
      attribute(button, "aria-pressed", String(view.state === state));
    }
  }
  function arrange() {
    const words = view.words.toLowerCase().split(/\s+/).filter(Boolean), value = COLUMNS[view.sort][1], sign = view.dir === "asc" ? 1 : -1;
    const matches = (row) => (!view.state || row.table.state === view.state) && words.every((word) => row.words.includes(word));
    const keyed = [...rows.values()].filter(matches).map((row) => [value(row), row]);
    keyed.sort(([a, r], [b, s]) => {
      if (a === b) return collator.compare(r.name, s.name);
      if (a === null || b === null) return a === null ? 1 : -1; // what is not known comes last
      return sign * (typeof a === "string" ? collator.compare(a, b) : a - b);
    });
    const shown = keyed.length, nodes = keyed.slice(0, view.rows).map(([, row]) => paint(row)), body = $("rows");
    if (nodes.length !== body.children.length || nodes.some((node, i) => body.children[i] !== node)) body.replaceChildren(...nodes);
    $("more").hidden = shown <= view.rows;
    say($("more"), `Show more: ${count(shown - nodes.length)} below`);
    for (const head of $("heads").children) {
      const on = head.dataset.column === view.sort;
      attribute(head, "aria-sort", on ? (view.dir === "asc" ? "ascending" : "descending") : null);
    }
    $("sort").value = view.sort;
    const filtered = view.words.trim() !== "" || view.state !== "";
    say($("count"), filtered ? `${count(shown)} of ${plural(rows.size, "table")}` : plural(rows.size, "table"));
    $("frame").hidden = !shown;
    $("empty").hidden = shown > 0;
    $("clear").hidden = !(filtered && rows.size);
    say($("empty-text"), rows.size ? "No table matches the filter." : status && status.ready
      ? "No table yet. A table appears here when its topic exists and the config names it." : "The service is starting. Tables appear here when it has looked at Kafka.");
  }
  let saving;
  function changed() {
    view.rows = PAGE;
    if (status) { showStates(Object.values(status.tables)); arrange(); }
    clearTimeout(saving);
    saving = setTimeout(() => {
      const words = new URLSearchParams();
      for (const [name, usual] of [["words", ""], ["state", ""], ["sort", "state"], ["dir", "asc"]]) if (view[name] !== usual) words.set(name, view[name]);
      window.history.replaceState(null, "", words.size ? `#${words}` : location.pathname);
    }, 300);
  }
  function further() {
    view.rows += PAGE;
    arrange();
  }
  function sortBy(id) {
    view.dir = view.sort !== id ? COLUMNS[id][2] : view.dir === "asc" ? "desc" : "asc";
    view.sort = id;
    changed();
  }
  function clear() {
    view.words = view.state = $("filter").value = "";
    changed();
    $("filter").focus();
  }

  // --- asking
  async function ask(path) {
    const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
  }
  let asking = false, waiting;
  async function turn() {
    if (asking) return;
    asking = true;
    clearTimeout(waiting);
    const began = performance.now();
    let took = 0;
    try {
      const dated = began - historyAt > HISTORY_EVERY;
      const answers = await Promise.all([ask("status"), ...(dated ? [ask("history")] : [])]);
      took = performance.now() - began;
      if (dated) { history = answers[1]; historyAt = began; }
      status = answers[0];
      answeredAt = Date.now();
      failures = 0;
      show();
    } catch (error) {
      failures += 1;
      if (error instanceof TypeError && !/fetch/i.test(error.message)) console.error(error);
    }
    asking = false;
    tick();
    // Where answering takes long (very many tables), it is asked less often: the service has other work.
    const rest = Math.max(document.hidden ? POLL_HIDDEN : POLL, Math.min(POLL_SLOW, 20 * took));
    waiting = setTimeout(turn, failures ? AGAIN : rest);
  }

  // --- start
  for (const [id, [label]] of Object.entries(COLUMNS)) {
    const button = make("button", { type: "button" }, label);
    button.onclick = () => sortBy(id);
    $("heads").append(make("th", { scope: "col", role: "columnheader", class: `c-${id}${NUMBERS.includes(id) ? " number" : ""}`, "data-column": id }, button));
    $("sort").append(make("option", { value: id }, label));
  }
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (name === "words" || (name === "state" && value in STATES) || (name === "sort" && value in COLUMNS) || (name === "dir" && /^(asc|desc)$/.test(value))) view[name] = value;
  }
  $("filter").value = view.words;
  $("filter").oninput = (event) => { view.words = event.target.value; changed(); };
  $("tools").onsubmit = (event) => event.preventDefault();
  $("sort").onchange = (event) => { view.sort = ""; sortBy(event.target.value); };
  $("clear").onclick = clear;
  $("more").onclick = further;
  const below = new IntersectionObserver((seen) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    further();
    // Observed anew: who is at the end again at once would else not be noticed, as it was in sight all the time.
    below.unobserve($("more"));
    below.observe($("more"));
  }, { rootMargin: "600px" });
  below.observe($("more"));
  $("attention-more").onclick = () => { view.all = !view.all; showAttention(Object.values(status.tables)); };
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); $("filter").focus(); }
    if (event.key === "Escape" && document.activeElement === $("filter")) clear();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) turn(); });
  setInterval(tick, 1000);
  turn();
})();
