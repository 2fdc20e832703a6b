// Nodes of the page. Names and messages are only ever set as text, never as markup.
const $ = (id) => document.getElementById(id);

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
// An error's fix; names and commands between backticks are shown as code.
function advise(node, fix) {
  const text = fix ? `What to do: ${fix}` : "", parts = text.split("`");
  if (node.advice === text) return;
  node.advice = text;
  node.replaceChildren(...(parts.length % 2 ? parts.map((part, i) => (i % 2 ? make("code", {}, part) : part)) : [text]));
}
function attribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// Makes the children of `parent` those of `items`, in that order. A part (an object with its `node`) that is there
// already stays the same, so that focus, selection, scroll and what is unfolded in it outlive an update.
function keep(parent, items, key, create, update) {
  const known = (parent.parts ??= new Map()), wanted = new Map();
  for (const item of items) {
    const id = key(item), part = known.get(id) ?? create(item);
    update(part, item);
    wanted.set(id, part);
  }
  for (const [id, part] of known) if (!wanted.has(id)) part.node.remove();
  place(parent, [...wanted.values()].map((part) => part.node));
  parent.parts = wanted;
}
// Puts nodes in order, moving as few as it can do simply; who had the focus gets it back.
function place(parent, nodes) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const wanted = new Set(nodes);
  for (const node of [...parent.children]) if (!wanted.has(node)) node.remove();
  let at = parent.firstElementChild;
  for (const node of nodes) {
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
  }
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

function commandLine() {
  const code = make("code"), before = make("span");
  const node = make("div", { class: "run" }, before, code);
  if (navigator.clipboard) {
    const copy = make("button", { type: "button", class: "plain" }, "Copy");
    copy.onclick = () => navigator.clipboard.writeText(code.textContent).then(() => {
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    }, () => getSelection().selectAllChildren(code));
    node.append(copy);
  }
  return { node, show(words, command) { say(before, words); say(code, command ?? ""); node.hidden = !command; } };
}
// An error's code, with a link to its documentation.
function codeLink() {
  const node = make("a", { class: "code", title: "What this means, and what to do" });
  return { node, show(code) { say(node, code); attribute(node, "href", `errors#${encodeURIComponent(code)}`); } };
}
const addressOf = (table) => `#${new URLSearchParams({ table })}`;
function tableLink(name) {
  // A long name is broken between its words, not within them.
  const words = name.split(/(?<=[._])/).flatMap((word) => [word, make("wbr")]).slice(0, -1);
  return make("a", { href: addressOf(name) }, ...words);
}
