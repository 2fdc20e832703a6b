// What needs somebody, above the tables: one card per cause, however many tables have it.
const SHOWN = 5; // causes that are shown before one has to ask for more
const NAMED = 6; // tables of one cause that are named

const KINDS = {
  halted: { words: "halted", before: "Then start it again:", each: "Then start each of them again:" },
  retrying: { words: "tried again" },
  orphaned_rows: { words: "with orphaned rows", before: "To remove them:", each: "To remove them, for each of these tables:" },
};
const RANKS = Object.keys(KINDS);

function causes(tables) {
  const found = new Map();
  for (const table of tables) {
    if (!table.error && !table.orphaned_rows) continue;
    const kind = table.state === "halted" ? "halted" : table.error ? "retrying" : "orphaned_rows", code = table.error?.code ?? "";
    const id = `${kind} ${code}`;
    if (!found.has(id)) found.set(id, { id, kind, code, tables: [] });
    found.get(id).tables.push(table);
  }
  for (const cause of found.values()) cause.tables.sort((a, b) => collator.compare(a.table, b.table));
  const rank = (cause) => RANKS.indexOf(cause.kind);
  return [...found.values()].sort((a, b) => rank(a) - rank(b) || b.tables.length - a.tables.length || collator.compare(a.id, b.id));
}
function causeCard(cause) {
  const card = {
    title: make("h3"), what: make("span", { class: "what" }), code: codeLink(), message: make("p"),
    fix: make("p", { class: "fix" }), run: commandLine(), names: make("ul", { class: "names" }),
    rest: make("button", { type: "button", class: "plain" }),
  };
  card.rest.onclick = () => {
    const orphaned = cause.kind === "orphaned_rows";
    Object.assign(view, { words: cause.code, state: orphaned ? "" : cause.kind, only: orphaned ? "orphaned_rows" : "" });
    showTools();
    changed();
    $("filter").focus();
  };
  card.node = make("li", {}, card.title, " ", card.what, " ", card.code.node, card.message, card.fix, make("div", { class: "named" }, card.names, card.rest), card.run.node);
  return card;
}
function paintCause(card, { kind, code, tables }) {
  const [first] = tables, one = tables.length === 1, words = KINDS[kind];
  card.node.className = kind;
  const title = one ? first.table : plural(tables.length, "table");
  if (card.named !== title) {
    card.named = title;
    card.title.replaceChildren(one ? tableLink(title) : title);
  }
  say(card.what, kind !== "orphaned_rows" ? STATES[kind] : one ? plural(first.orphaned_rows, "orphaned row") : "Orphaned rows");
  card.code.node.hidden = !code;
  if (code) card.code.show(code);
  say(card.message, first.error ? first.error.message : "Rows that the last complete snapshot does not have.");
  if (!one && first.error) say(card.message, `${first.table}: ${first.error.message}`);
  card.fix.hidden = !first.error?.fix;
  advise(card.fix, first.error?.fix);
  card.run.show(one ? words.before : words.each, kind === "retrying" ? null : first.command);
  card.names.hidden = one;
  keep(card.names, one ? [] : tables.slice(0, NAMED), (t) => t.table, (t) => ({ node: make("li", {}, tableLink(t.table)) }), () => {});
  card.rest.hidden = tables.length <= NAMED;
  say(card.rest, `and ${count(tables.length - NAMED)} more`);
}
function showAttention(tables) {
  const found = causes(tables);
  $("attention").hidden = !found.length;
  const counts = RANKS.map((kind) => [found.filter((cause) => cause.kind === kind).reduce((n, cause) => n + cause.tables.length, 0), KINDS[kind].words]);
  say($("attention-title"), "Needs attention: " + counts.filter(([n]) => n).map(([n, words]) => `${count(n)} ${words}`).join(", "));
  keep($("attention-list"), view.all ? found : found.slice(0, SHOWN), (cause) => cause.id, causeCard, paintCause);
  $("attention-more").hidden = found.length <= SHOWN;
  say($("attention-more"), view.all ? "Show fewer" : `Show all ${count(found.length)}`);
}
