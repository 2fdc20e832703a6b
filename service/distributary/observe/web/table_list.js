// All tables: one row each, drawn when it is first seen; search, filters and order.
const RATE_SLOTS = 4; // two minutes of history
const PAGE = 100; // rows that are drawn before one scrolls on: a thousand at once are slow on a phone
const HOLD = 10000; // milliseconds for which rows keep their order under the pointer, or while one of them has the focus
const RANK = Object.fromEntries(Object.keys(STATES).map((state, i) => [state, i]));
// id: label, the value it sorts by, the more useful direction
const COLUMNS = {
  table: ["Table", (r) => r.name, "asc"],
  state: ["State", (r) => RANK[r.table.state] ?? 9, "asc"],
  lag: ["Lag", (r) => r.table.lag_records, "desc"],
  rate: ["Throughput", (r) => r.rate, "desc"],
  freshness: ["Freshness", (r) => r.table.freshness_seconds, "desc"],
  commit: ["Last commit", (r) => r.table.last_commit_at, "desc"],
  quarantined: ["Quarantined", (r) => r.table.quarantined, "desc"],
  orphaned_rows: ["Orphaned", (r) => r.table.orphaned_rows, "desc"],
};
const NUMBERS = ["lag", "rate", "freshness", "commit", "quarantined", "orphaned_rows"];
const ONLY = {
  behind: ["Behind", (t) => t.lag_records > 0],
  quarantined: ["With records in quarantine", (t) => t.quarantined > 0],
  orphaned_rows: ["With orphaned rows", (t) => t.orphaned_rows > 0],
  warnings: ["With warnings", (t) => t.warnings.length > 0],
};
const rows = new Map();

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
  for (const id of ["state", "lag", "commit", "quarantined", "orphaned_rows"]) parts[id] = make("span", id === "state" ? { class: "state" } : {});
  parts.lagNote = make("small");
  parts.commitNote = make("small");
  parts.rate = curve();
  parts.freshness = curve();
  parts.node = make(
    "tr", { role: "row" },
    make("th", { scope: "row", role: "rowheader", class: "c-table", title: row.name }, tableLink(row.name)),
    cell("state", parts.state), cell("lag", parts.lag, parts.lagNote), cell("rate", parts.rate.node),
    cell("freshness", parts.freshness.node), cell("commit", parts.commit, parts.commitNote),
    cell("quarantined", parts.quarantined), cell("orphaned_rows", parts.orphaned_rows),
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
  for (const id of ["quarantined", "orphaned_rows"]) {
    say(parts[id], table[id] === null ? "–" : count(table[id]));
    parts[id].className = table[id] ? "alarm" : "zero";
  }
  attribute(parts.orphaned_rows, "title", table.orphaned_rows ? "rows that the last complete snapshot does not have" : null);
  const seen = history.tables[row.name], minutes = Math.round((history.points * history.step_seconds) / 60);
  const peak = seen ? Math.max(...seen.records) / history.step_seconds : 0, slowest = seen ? Math.max(...seen.freshness, 0) : 0;
  say(parts.rate.text, seen ? `${rateText(row.rate)}/s` : "–");
  draw(parts.rate, seen?.records, `Throughput, last ${minutes} minutes: at most ${rateText(peak)} records a second`);
  say(parts.freshness.text, table.freshness_seconds === null ? "–" : duration(table.freshness_seconds));
  attribute(parts.freshness.text, "title", table.stages && stagesText(table.stages));
  draw(parts.freshness, seen?.freshness, `Freshness, last ${minutes} minutes: at most ${duration(slowest)}`);
  return parts.node;
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
// Rows stay where they are as long as somebody is about to press one, or reads with the keyboard.
let touchedAt = -Infinity, order = new Map();
const isHeld = () => performance.now() - touchedAt < HOLD && ($("rows").matches(":hover") || $("rows").contains(document.activeElement));

function arrange(held = false) {
  const words = view.words.toLowerCase().split(/\s+/).filter(Boolean), value = COLUMNS[view.sort][1], sign = view.dir === "asc" ? 1 : -1;
  const matches = (row) => (!view.state || row.table.state === view.state) && (!view.only || ONLY[view.only][1](row.table))
    && words.every((word) => row.words.includes(word));
  const keyed = [...rows.values()].filter(matches).map((row) => [value(row), row]);
  keyed.sort(([a, r], [b, s]) => {
    if (held && order.has(r.name) && order.has(s.name)) return order.get(r.name) - order.get(s.name);
    if (held && order.has(r.name) !== order.has(s.name)) return order.has(r.name) ? -1 : 1;
    if (a === b) return collator.compare(r.name, s.name);
    if (a === null || b === null) return a === null ? 1 : -1; // what is not known comes last
    return sign * (typeof a === "string" ? collator.compare(a, b) : a - b);
  });
  order = new Map(keyed.map(([, row], i) => [row.name, i]));
  const shown = keyed.length, nodes = keyed.slice(0, view.rows).map(([, row]) => paint(row));
  place($("rows"), nodes);
  $("more").hidden = shown <= view.rows;
  say($("more"), `Show more: ${count(shown - nodes.length)} below`);
  for (const head of $("heads").children) {
    const on = head.dataset.column === view.sort;
    attribute(head, "aria-sort", on ? (view.dir === "asc" ? "ascending" : "descending") : null);
  }
  $("sort").value = view.sort;
  const filtered = view.words.trim() !== "" || view.state !== "" || view.only !== "";
  say($("count"), filtered ? `${count(shown)} of ${plural(rows.size, "table")}` : plural(rows.size, "table"));
  $("frame").hidden = !shown;
  $("empty").hidden = shown > 0;
  $("clear").hidden = !(filtered && rows.size);
  say($("empty-text"), rows.size ? "No table matches the filter." : status && status.ready
    ? "No table yet. A table appears here when its topic exists and the config names it." : "The service is starting. Tables appear here when it has read the list of topics.");
}
let saving;
function changed() {
  view.rows = PAGE;
  if (status) { showStates(Object.values(status.tables)); arrange(); }
  clearTimeout(saving);
  saving = setTimeout(() => window.history.replaceState(null, "", addressOfList()), 300);
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
  view.words = view.state = view.only = "";
  showTools();
  changed();
  $("filter").focus();
}
function showTools() {
  $("filter").value = view.words;
  $("only").value = view.only;
}
function addressOfList() {
  const words = new URLSearchParams();
  for (const [name, usual] of Object.entries(USUAL)) if (view[name] !== usual) words.set(name, view[name]);
  return words.size ? `#${words}` : location.pathname + location.search;
}
