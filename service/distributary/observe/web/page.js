// The whole: what is asked, the totals, and which of both views is shown.
const POLL = 3000, POLL_SLOW = 10000, POLL_HIDDEN = 30000, AGAIN = 1000, TIMEOUT = 10000, HISTORY_EVERY = 15000;
const SILENCE = 600; // seconds without a turn of the service's loop, as /livez has it
const USUAL = { words: "", state: "", only: "", sort: "state", dir: "asc" }; // what stands in the address where it is not this
const VALID = {
  words: (text) => text !== null, state: (name) => Object.hasOwn(STATES, name), only: (name) => Object.hasOwn(ONLY, name),
  sort: (name) => Object.hasOwn(COLUMNS, name), dir: (name) => name === "asc" || name === "desc",
};
const view = { ...USUAL, table: "", all: false, rows: PAGE };
let history = { step_seconds: 30, points: 60, tables: {} };
let status = null, details = null, answeredAt = null, failures = 0, historyAt = -Infinity;
const total = (name) => document.querySelector(`[data-total="${name}"]`);

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
  const { transactions, heartbeat_at: heartbeat } = status;
  $("heartbeat").hidden = heartbeat === undefined;
  if (heartbeat !== undefined) {
    say(total("heartbeat"), duration(Math.max(0, now - heartbeat)));
    attribute(total("heartbeat"), "title", moment(heartbeat));
  }
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
  if (status.seconds_since_beat > SILENCE) return ["bad", `The service's loop has not run for ${duration(status.seconds_since_beat)}`];
  if (of("halted")) return ["bad", `${plural(of("halted"), "table")} halted`];
  if (!status.ready) return ["", "The service is starting"];
  if (of("retrying")) return ["warn", `${plural(of("retrying"), "table")} tried again`];
  if (!tables.length) return ["", "No tables yet"];
  if (of("paused")) return ["warn", `${plural(of("paused"), "table")} paused`];
  if (of("behind")) return ["good", `${plural(of("behind"), "table")} behind, and catching up`];
  return ["good", `${plural(tables.length, "table")}, all up to date`];
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
  showView();
  const [kind, text] = verdict(tables), halted = tables.filter((t) => t.state === "halted").length;
  $("verdict").className = `verdict ${kind}`;
  say($("verdict"), text);
  document.title = halted ? `(${halted} halted) distributary` : "distributary";
  say($("version"), `distributary ${status.version}`);
  $("tools").hidden = !tables.length;
  const { stream, config } = status;
  $("stream").hidden = !stream;
  if (stream) say($("stream"), `No new records for ${duration(Math.floor(now - stream.since))}: ${stream.message} (${stream.code}). What to do: ${stream.fix}.`);
  $("config").hidden = !config;
  if (config) say($("config"), [...config.faults.map((f) => `${f.file}:${f.line}: ${f.message} (${f.code}). What to do: ${f.fix || "correct it"}. Until then the file's former contents apply; the next start refuses it.`),
    ...(config.waiting.length ? [`Changed in the config, applies after a restart: ${config.waiting.join(", ")}.`] : [])].join(" "));
  arrange(isHeld());
}
function tick() {
  $("gone").hidden = failures < 2;
  document.body.classList.toggle("stale", failures >= 2 && status !== null);
  if (failures >= 2) {
    const since = answeredAt && Math.max(0, (Date.now() - answeredAt) / 1000);
    const words = answeredAt ? `The service has not answered since ${new Date(answeredAt).toLocaleTimeString()} (${duration(Math.floor(since))}). This page shows the status of that time.`
      : "The service does not answer.";
    say($("gone"), words);
    if (document.title[0] !== "⚠") document.title = `⚠ no answer · ${document.title}`;
    if (!status) { say($("verdict"), "No answer"); say($("empty-text"), "This page continues when the service answers again."); }
  }
  if (status && answeredAt) say($("clock"), `up ${duration(status.time - status.started_at)} · as of ${new Date(answeredAt).toLocaleTimeString()}`);
}

// --- asking
async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}
let asking = false, askedMeanwhile = false, waiting;
async function turn() {
  askedMeanwhile = asking;
  if (asking) return;
  asking = true;
  clearTimeout(waiting);
  const began = performance.now();
  let took = 0;
  try {
    const dated = began - historyAt > HISTORY_EVERY;
    const answers = await Promise.all([ask("tables"), ...(dated ? [ask("history")] : [])]);
    took = performance.now() - began;
    details = view.table && Object.hasOwn(answers[0].tables, view.table) ? await ask(`tables/${encodeURIComponent(view.table)}`).catch(() => null) : null;
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
  waiting = setTimeout(turn, askedMeanwhile ? 0 : failures ? AGAIN : rest);
}

// --- which view
function showView() {
  const one = view.table !== "";
  $("list").hidden = one;
  $("totals").hidden = !rows.size;
  $("single").hidden = !one;
  if (one) showTable(view.table, status?.tables[view.table], details?.table === view.table ? details : null);
}
let leftAt = null; // where the list was left: how far it was scrolled, and for which table
function follow() {
  const before = view.table, given = new URLSearchParams(location.hash.slice(1));
  view.table = given.get("table") ?? "";
  if (view.table && !before) leftAt = { y: scrollY, table: view.table };
  if (!view.table) {
    for (const [name, usual] of Object.entries(USUAL)) view[name] = VALID[name](given.get(name)) ? given.get(name) : usual;
    showTools();
  }
  if (view.table === before) { if (status) { showStates(Object.values(status.tables)); arrange(); } return; }
  details = null;
  showView();
  if (view.table) {
    scrollTo(0, 0);
    $("single-title").focus({ preventScroll: true });
    turn();
  } else if (leftAt) {
    arrange();
    scrollTo(0, leftAt.y);
    rows.get(leftAt.table)?.parts?.node.querySelector("a").focus({ preventScroll: true });
    leftAt = null;
  }
}

// --- start
for (const [id, [label]] of Object.entries(COLUMNS)) {
  const button = make("button", { type: "button" }, label);
  button.onclick = () => sortBy(id);
  $("heads").append(make("th", { scope: "col", role: "columnheader", class: `c-${id}${NUMBERS.includes(id) ? " number" : ""}`, "data-column": id }, button));
  $("sort").append(make("option", { value: id }, label));
}
$("only").append(make("option", { value: "" }, "Any table"), ...Object.entries(ONLY).map(([id, [label]]) => make("option", { value: id }, label)));
$("filter").oninput = (event) => { view.words = event.target.value; changed(); };
$("only").onchange = (event) => { view.only = event.target.value; changed(); };
$("tools").onsubmit = (event) => event.preventDefault();
$("sort").onchange = (event) => { view.sort = ""; sortBy(event.target.value); };
$("clear").onclick = clear;
$("more").onclick = further;
$("back").onclick = (event) => {
  if (!leftAt) return; // come by a link: the address of the list is followed
  event.preventDefault();
  window.history.back();
};
for (const kind of ["pointermove", "keydown", "focusin"]) $("rows").addEventListener(kind, () => { touchedAt = performance.now(); });
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
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    if (view.table) {
      leftAt = null; // the focus goes to the field, not to where it was
      window.history.pushState(null, "", addressOfList());
      follow();
    }
    $("filter").focus();
  }
  if (event.key === "Escape" && document.activeElement === $("filter")) clear();
  else if (event.key === "Escape" && view.table) $("back").click();
});
window.addEventListener("hashchange", follow);
document.addEventListener("visibilitychange", () => { if (!document.hidden) turn(); });
setInterval(tick, 1000);
follow();
turn();
