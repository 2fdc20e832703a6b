// One table: what it is doing, where it is, how it got there.
const PHASES = { check: "check", read: "read and decode", quarantine: "quarantine", write: "apply and commit" };
const LAYOUTS = {
  auto: "auto: files are rewritten while that is cheap, else deletion vectors mark rows",
  rewrite: "rewrite: files are written again without the removed rows",
  vectors: "vectors: deletion vectors mark the removed rows",
};
const FIGURES = {
  lag: "Lag", rate: "Throughput", freshness: "Freshness", commit: "Last commit", applied: "Records processed",
  quarantined: "Quarantined", orphaned_rows: "Orphaned rows",
};
const single = {}; // the parts of the view, drawn when it is first asked for

function figure(id, label) {
  const value = make("b"), noteOf = make("small"), node = make("div", {}, make("dt", {}, label), make("dd", {}, value, noteOf));
  single[id] = { value, note: noteOf };
  return node;
}
function grid(id, caption, heads, kind = "") {
  const body = make("tbody", { role: "rowgroup" });
  const head = make("tr", { role: "row" }, ...heads.map(([label, number]) => make("th", { scope: "col", role: "columnheader", class: number ? "number" : "" }, label)));
  const table = make("table", { role: "table", class: `plain-table ${kind}` }, make("caption", { class: "hidden-text" }, caption), make("thead", { role: "rowgroup" }, head), body);
  single[id] = { body, heads };
  return make("div", { class: "frame scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
}
// A row of such a table: one cell per heading, each with a line below where `notes` names it.
function gridRow(heads) {
  const cells = heads.map(([label, number, isCode], i) => {
    const link = isCode ? codeLink() : null, value = link?.node ?? make("span"), noteOf = make("small");
    return { say: link ? link.show : (text) => say(value, text), note: noteOf, node: make(i ? "td" : "th", { role: i ? "cell" : "rowheader", ...(i ? {} : { scope: "row" }), class: number ? "number" : "", "data-label": label }, value, noteOf) };
  });
  return { cells, node: make("tr", { role: "row" }, ...cells.map((cell) => cell.node)) };
}
function fillGrid(id, items, key, values) {
  const { body, heads } = single[id];
  keep(body, items, key, () => gridRow(heads), (row, item) => {
    values(item).forEach((value, i) => {
      const [text, below] = Array.isArray(value) ? value : [value, ""];
      row.cells[i].say(text);
      say(row.cells[i].note, below);
    });
  });
}
function panel(title, ...children) {
  const id = `single-${title.toLowerCase().replace(/\W+/g, "-")}`;
  return make("section", { class: "panel", "aria-labelledby": id }, make("h3", { id }, title), ...children);
}
function facts(id) {
  single[id] = make("dl", { class: "facts" });
  return single[id];
}
function fillFacts(id, pairs) {
  keep(single[id], pairs.filter(([, value]) => value !== null), ([label]) => label, ([label]) => {
    const value = make("dd");
    return { value, node: make("div", {}, make("dt", {}, label), value) };
  }, (part, [, value]) => say(part.value, value));
}
function drawTable() {
  const big = (id, label) => {
    single[id] = { ...curve(), label, words: make("p", {}, label) };
    return make("div", { class: "chart" }, single[id].words, single[id].svg);
  };
  single.error = { title: make("span", { class: "what" }), code: codeLink(), message: make("p"), fix: make("p", { class: "fix" }), run: commandLine() };
  const { title, code, message, fix, run } = single.error;
  single.error.node = make("div", { class: "card" }, title, " ", code.node, message, fix, run.node);
  single.paused = { text: make("p"), run: commandLine() };
  single.paused.node = make("div", { class: "card" }, make("span", { class: "what" }, "Paused"), single.paused.text, single.paused.run.node);
  single.warnings = make("ul", { class: "warnings" });
  single.none = make("p", { class: "soft" });
  single.list = commandLine();
  single.replay = commandLine();
  single.reconcile = commandLine();
  single.columnCount = make("summary");
  single.noCommits = make("p", { class: "soft" }, "No commit since the service started.");
  single.noStored = make("p", { class: "soft" }, "Known after the first commit since the service started.");
  single.noStages = make("p", { class: "soft" }, "No change was streamed since the service started.");
  single.noChanges = make("p", { class: "soft" });
  single.noQuarantine = make("p", { class: "soft" }, "No record of this table is in quarantine.");
  const columns = make("details", {}, single.columnCount, grid("columns", "Columns", [["Column"], ["Type"], ["Role"]], "narrow"));
  $("single-body").append(
    make("dl", { class: "totals" }, ...Object.entries(FIGURES).map(([id, label]) => figure(id, label))),
    single.error.node, single.paused.node, single.warnings,
    make("div", { class: "charts" }, big("rateCurve", "Throughput, last 30 minutes"), big("freshCurve", "Freshness, last 30 minutes")),
    panel("Delay by stage", single.noStages, facts("stages")),
    panel("Partitions", grid("partitions", "Partitions of the topic", [["Partition"], ["Next offset", true], ["End in Kafka", true], ["Lag", true]], "narrow")),
    panel("Last commits", single.noCommits, grid("commits", "Last commits, the newest first", [["Committed"], ["Records", true], ["Rows", true], ["Took", true], ["By phase"]])),
    panel("Columns", single.noStored, columns, make("h4", {}, "Changes since the service started"), single.noChanges, grid("changes", "Changes of the columns", [["When"], ["What"], ["Columns"]], "narrow")),
    panel("Quarantine", single.noQuarantine, grid("reasons", "Records put into quarantine since the service started, by reason", [["Reason", false, true], ["Records", true]], "narrow"), single.list.node, single.replay.node),
    panel("Layout and index", facts("layout")),
    panel("Source", facts("source"), single.reconcile.node),
  );
}
function showTable(name, table, detail) {
  say($("single-title"), name);
  $("single-body").hidden = !table;
  $("single-missing").hidden = !!table || !status;
  if (!table) return;
  if (!single.error) drawTable();
  const row = rows.get(name), now = status.time, at = table.last_commit_at;
  $("single-state").className = `state-of ${table.state}`;
  say($("single-state"), STATES[table.state] ?? table.state);
  const set = (id, value, below = "") => { say(single[id].value, value); say(single[id].note, below); };
  set("lag", count(table.lag_records), table.lag_records && table.lag_seconds !== null ? `records, ${duration(table.lag_seconds)} old` : "records");
  set("rate", row ? rateText(row.rate) : "–", "records/s, last 2 min");
  set("freshness", table.freshness_seconds === null ? "–" : duration(table.freshness_seconds), "source to table");
  set("commit", at === null ? "–" : ago(Math.max(0, now - at)), at === null ? "" : clockTime(at, now));
  set("applied", count(table.records_applied), "over all runs");
  set("quarantined", count(table.quarantined), "records, over all runs");
  set("orphaned_rows", table.orphaned_rows === null ? "–" : count(table.orphaned_rows), table.orphaned_rows === null ? "not known" : "left by a snapshot");
  showTrouble(table, detail);
  const seen = history.tables[name];
  const chart = (part, values, peak) => {
    const words = values ? `${part.label}: at most ${peak(Math.max(...values, 0))}` : `${part.label}: no commit`;
    say(part.words, words);
    draw(part, values, words);
  };
  chart(single.rateCurve, seen?.records, (most) => `${rateText(most / history.step_seconds)} records/s`);
  chart(single.freshCurve, seen?.freshness, duration);
  if (!detail) return;
  showPartitions(detail);
  showDetails(table, detail, now);
}
function showTrouble(table, detail) {
  const { error } = table, { node, title, code, message, fix, run } = single.error;
  node.hidden = !error;
  if (error) {
    node.className = `card ${table.state}`;
    say(title, STATES[table.state]);
    code.show(error.code);
    say(message, error.message);
    advise(fix, error.fix);
    run.show("Then start it again:", table.state === "halted" ? table.command : null);
  }
  single.paused.node.hidden = table.paused === null;
  say(single.paused.text, table.paused ?? "");
  single.paused.run.show("To have it continue:", detail?.commands.unpause);
  keep(single.warnings, table.warnings, (w) => `${w.code} ${w.message}`, (w) => {
    const link = codeLink();
    link.show(w.code);
    const fix = make("p", { class: "fix" });
    advise(fix, w.fix);
    return { node: make("li", { class: "card" }, make("span", { class: "what" }, "Warning"), " ", link.node, make("p", {}, w.message), fix) };
  }, () => {});
  single.reconcile.show("To remove the orphaned rows:", table.orphaned_rows && table.state !== "halted" ? table.command : null);
}
function showPartitions(table) {
  const places = [];
  for (const topic of new Set([...Object.keys(table.target_offsets), ...Object.keys(table.next_offsets)])) {
    const next = table.next_offsets[topic] ?? {}, end = table.target_offsets[topic] ?? {};
    for (const partition of new Set([...Object.keys(next), ...Object.keys(end)])) {
      places.push({ topic, partition: Number(partition), next: next[partition] ?? null, end: end[partition] ?? null });
    }
  }
  places.sort((a, b) => collator.compare(a.topic, b.topic) || a.partition - b.partition);
  const many = new Set(places.map((p) => p.topic)).size > 1, offset = (n) => (n === null ? "–" : whole.format(n));
  fillGrid("partitions", places, (p) => `${p.topic} ${p.partition}`, (p) => [
    [`${p.partition}`, many ? p.topic : ""], offset(p.next), offset(p.end), p.end === null ? "–" : count(Math.max(0, p.end - (p.next ?? 0))),
  ]);
}
function showDetails(table, detail, now) {
  const { commits, stored, schema_changes: changes, quarantined_by_reason: reasons, commands } = detail;
  single.noCommits.hidden = commits.length > 0;
  fillGrid("commits", commits, (c) => `${c.version} ${c.at}`, (c) => [
    [ago(Math.max(0, now - c.at)), c.version === null ? "" : `version ${c.version}`],
    [count(c.records), c.quarantined ? `${count(c.quarantined)} to quarantine` : ""],
    [count(Object.values(c.rows).reduce((a, b) => a + b, 0)), [["inserted", c.rows.inserted], ["updated", c.rows.updated], ["deleted", c.rows.deleted]].filter(([, n]) => n).map(([words, n]) => `${count(n)} ${words}`).join(", ")],
    duration(c.seconds),
    Object.entries(PHASES).filter(([phase]) => c.phases[phase] >= 0.005).map(([phase, words]) => `${words} ${duration(c.phases[phase])}`).join(", "),
  ]);
  single.noStored.hidden = stored !== null;
  single.columnCount.parentNode.hidden = stored === null;
  if (stored) {
    const columns = Object.entries(stored.columns), role = (name) => [stored.key.includes(name) ? "key" : "", stored.partitioned_by.includes(name) ? "partition" : "", stored.added_by_service.includes(name) ? "added by the service" : ""].filter(Boolean).join(", ");
    say(single.columnCount, `${plural(columns.length, "column")}, key: ${stored.key.join(", ") || "none"}`);
    fillGrid("columns", columns, ([name]) => name, ([name, kind]) => [name, kind, role(name)]);
  }
  say(single.noChanges, changes.length ? "" : "None. DESCRIBE HISTORY of the table has earlier ones.");
  single.noChanges.hidden = changes.length > 0;
  const list = (columns) => Object.entries(columns).map(([name, kind]) => `${name} ${kind}`).join(", ");
  fillGrid("changes", changes.flatMap((c) => [["added", c], ["widened", c]]).filter(([how, c]) => Object.keys(c[how]).length), ([how, c]) => `${how} ${c.at}`,
    ([how, c]) => [ago(Math.max(0, now - c.at)), how === "widened" ? "wider type" : c.made ? "table made" : "added", list(c[how])]);
  for (const [id, some] of [["commits", commits.length], ["changes", changes.length], ["reasons", Object.keys(reasons).length]]) {
    single[id].body.closest(".frame").hidden = !some;
  }
  single.noQuarantine.hidden = table.quarantined > 0;
  fillGrid("reasons", Object.entries(reasons), ([reason]) => reason, ([reason, n]) => [reason, count(n)]);
  single.list.show("To see them:", table.quarantined ? commands.quarantine_list : null);
  single.replay.show("To apply them again, after the cause is fixed:", table.quarantined ? commands.quarantine_replay : null);
  const since = (seconds) => (seconds === null ? "not yet" : ago(Math.max(0, now - seconds)));
  const { stages } = table, heartbeat = status.heartbeat_at;
  single.noStages.hidden = stages !== null;
  fillFacts("stages", [
    ...STAGES.map(([id, words]) => [words, stages && (stages[id] === null ? "not known" : duration(stages[id]))]),
    ["Connector's last heartbeat", heartbeat === undefined ? null : ago(Math.max(0, now - heartbeat))],
  ]);
  fillFacts("layout", [
    ["Layout in force", LAYOUTS[table.layout] ?? table.layout],
    ["Files", stored && `${count(stored.files)}, ${size(stored.bytes)}${stored.rows === null ? "" : `, ${plural(stored.rows, "row")}`}`],
    ["With deletion vectors", stored && plural(stored.files_with_vectors, "file")],
    ["Partitioned by", stored && (stored.partitioned_by.join(", ") || "nothing")],
    ["Key index here", stored && (stored.key.length ? `${count(stored.indexed_files)} of ${plural(stored.files, "file")}` : "no key")],
    ["Remembered keys", table.remembered_keys === null ? null : `${count(table.remembered_keys)}, ${size(table.memory_bytes ?? 0)} a commit`],
    ["Compacted", since(table.compacted_at)],
    ["Old files removed", since(table.vacuumed_at)],
  ]);
  fillFacts("source", [
    ["Topic", table.topics.join(", ")], ["Position in the source's log", table.position ?? "not known"],
    ["Newest change at the source", table.source_ts === null ? "not known" : moment(table.source_ts / 1000)],
    ["Name in the catalog", table.catalog_name],
    ["Ambiguous deletes", table.ambiguous_deletes ? count(table.ambiguous_deletes) : null],
  ]);
}
