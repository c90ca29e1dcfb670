"use strict";

// Sorting: the button of a header switches between two directions and the order of the experiment.
for (const table of document.querySelectorAll("table.sortable")) {
  const original = [...table.tBodies];
  const headers = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const numeric = header.classList.contains("number");
      const cycle = numeric ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
      const next = cycle[(cycle.indexOf(header.getAttribute("aria-sort")) + 1) % 3];
      headers.forEach((other) => other.setAttribute("aria-sort", "none"));
      header.setAttribute("aria-sort", next);
      table.append(...(next === "none" ? original : sorted(original, column, numeric, next)));
      document.getElementById("announcement").textContent =
        next === "none" ? "in the experiment's order" : `sorted by ${header.textContent.trim()}, ${next}`;
    });
  });
}

function sorted(bodies, column, numeric, direction) {
  const key = (body) => body.rows[0].cells[column].dataset.sort ?? body.rows[0].cells[column].textContent;
  const missing = (body) => key(body) === "" || (numeric && Number.isNaN(Number(key(body))));
  const compare = numeric
    ? (a, b) => Number(key(a)) - Number(key(b))
    : (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
  const present = bodies.filter((body) => !missing(body)).sort(compare);
  if (direction === "descending") present.reverse();
  // Rows without a value stay at the end in both directions.
  return [...present, ...bodies.filter(missing)];
}

// Tooltips with the origin of a number, on hover, focus and tap. The Tab key stops once per table; arrow keys move in it.
const tip = document.getElementById("tip");
function show(button) {
  document.querySelector(".tip[aria-describedby]")?.removeAttribute("aria-describedby");
  tip.textContent = button.dataset.tip;
  tip.hidden = false;
  button.setAttribute("aria-describedby", "tip");
  const anchor = button.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, anchor.right - size.width), document.documentElement.clientWidth - size.width - 8);
  const above = anchor.top - size.height - 8;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${above > 8 ? above : anchor.bottom + 8}px`;
}
function hide(button) {
  tip.hidden = true;
  button.removeAttribute("aria-describedby");
}
for (const table of document.querySelectorAll("table")) {
  const tips = [...table.querySelectorAll(".tip")];
  tips.forEach((button, index) => {
    button.tabIndex = index === 0 ? 0 : -1;
    button.addEventListener("mouseenter", () => show(button));
    button.addEventListener("mouseleave", () => hide(button));
    button.addEventListener("click", () => show(button));
    button.addEventListener("blur", () => hide(button));
    button.addEventListener("focus", () => {
      tips.forEach((other) => (other.tabIndex = other === button ? 0 : -1));
      show(button);
    });
    button.addEventListener("keydown", (event) => {
      const cell = button.closest("td");
      const row = cell.parentElement;
      const next = {
        ArrowLeft: () => nearest(row, cell.cellIndex, -1),
        ArrowRight: () => nearest(row, cell.cellIndex, 1),
        ArrowUp: () => vertical(row, cell.cellIndex, "previousElementSibling"),
        ArrowDown: () => vertical(row, cell.cellIndex, "nextElementSibling"),
      }[event.key]?.();
      if (next) {
        event.preventDefault();
        next.focus({ preventScroll: true });
        // Focus alone does not scroll a number that the column of names half covers.
        next.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
      }
    });
  });
}
function nearest(row, column, step) {
  for (let index = column + step; index >= 0 && index < row.cells.length; index += step) {
    const button = row.cells[index].querySelector(".tip");
    if (button) return button;
  }
  return null;
}
function vertical(row, column, side) {
  for (let other = row[side]; other; other = other[side]) {
    const button = other.cells[column].querySelector(".tip");
    if (button) return button;
  }
  return null;
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") tip.hidden = true;
});
function follow() {
  const button = document.querySelector(".tip[aria-describedby]");
  if (!button || tip.hidden) return;
  if (button.matches(":hover, :focus")) show(button);
  else hide(button);
}
document.addEventListener("scroll", follow, { capture: true, passive: true });

// A link to a collapsed part opens it.
function reveal() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.closest("details")) {
    for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    target.scrollIntoView();
    target.querySelector("summary")?.focus({ preventScroll: true });
  }
}
addEventListener("hashchange", reveal);
reveal();
