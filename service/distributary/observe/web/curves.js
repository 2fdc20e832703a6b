// Small curves of what a table did lately.
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
