"use strict";
// Sorting: a click on a column head sorts the table, a second click reverses the order.
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const table = head.closest("table");
    const column = head.cellIndex;
    const rising = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = x === "" ? 1 : y === "" ? -1
        : isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return rising || x === "" || y === "" ? order : -order;
    });
    body.append(...rows);
  });
}

// Interactive figures: this page contains the library, compressed. It is unpacked when the first
// figure comes into view. Until then, without the library, and in print, the picture is shown.
let library = null;
function load() {
  library ??= (async () => {
    const packed = atob(document.getElementById("plotly").textContent.trim());
    const bytes = new Uint8Array(packed.length);
    for (let place = 0; place < packed.length; place++) bytes[place] = packed.charCodeAt(place);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    return window.Plotly;
  })();
  return library;
}
// Dark mode: each colour of a twin has its dark one in a table, as in the pictures.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const colours = JSON.parse(document.querySelector("main").dataset.dark ?? "{}");
function inTheDark(spec) {
  if (Array.isArray(spec)) return spec.map(inTheDark);
  if (spec !== null && typeof spec === "object")
    return Object.fromEntries(Object.entries(spec).map(([key, value]) => [key, inTheDark(value)]));
  return typeof spec === "string" ? colours[spec.toLowerCase()] ?? spec : spec;
}
dark.addEventListener("change", () => {
  for (const figure of document.querySelectorAll("figure.drawn")) draw(figure);
});
async function draw(figure) {
  try {
    const plotly = await load();
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const twin = figure.querySelector(".twin");
    const height = spec.layout.height ?? 460;
    twin.style.height = height + "px";
    figure.classList.add("drawn");
    const shown = dark.matches ? inTheDark(spec) : spec;
    await plotly.react(twin, shown.data, { ...shown.layout, height },
      { responsive: true, displaylogo: false });
    document.documentElement.dataset.drawn = figure.id;
  } catch (error) {
    figure.classList.remove("drawn");
    console.error(error);
  }
}
const wide = window.matchMedia("(min-width: 1088px)").matches;
if (document.getElementById("plotly") && window.DecompressionStream && wide) {
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watch.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "300px" });
  for (const figure of document.querySelectorAll("figure[data-twin]")) watch.observe(figure);
}
