"use strict";
// Zoom, hover and keys of the time lines. Everything is readable without this script.
document.querySelectorAll(".gantt").forEach((gantt) => {
  const length = Number(gantt.dataset.length);
  if (!length) return;
  const begin = gantt.dataset.begin === "" ? null : Number(gantt.dataset.begin);
  const planes = gantt.querySelectorAll(".plane");
  const axis = gantt.querySelector(".axis .plane");
  const grid = gantt.querySelector("symbol");
  const lane = gantt.querySelector("th.lane svg");
  const cross = gantt.querySelector(".cross");
  const said = cross.querySelector("output");
  const LEAST = Math.min(1, length / 100); // seconds: no log prints finer stamps than this is wide
  const STEPS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  const SVG = "http://www.w3.org/2000/svg";
  let from = 0, to = length;
  gantt.querySelector(".tools").hidden = false;
  // The tooltip of ours replaces the browser's slow one.
  gantt.querySelectorAll("td.lane title").forEach((title) => {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  });

  const draw = (parent, name, attributes) => {
    const node = parent.appendChild(document.createElementNS(SVG, name));
    Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
    return node;
  };
  const two = (n) => String(n).padStart(2, "0");
  const offset = (s) => {
    if (!s) return "0";
    if (s < 120 && to - from < 120) return `${Number(s.toFixed(2))} s`;
    const whole = Math.round(s), h = Math.floor(whole / 3600);
    const rest = `${h ? two(Math.floor(whole / 60) % 60) : Math.floor(whole / 60)}:${two(whole % 60)}`;
    return h ? `${h}:${rest}` : rest;
  };
  const clock = (s) => {
    const t = Math.floor(begin + s) % 86400;
    return `${two(Math.floor(t / 3600))}:${two(Math.floor(t / 60) % 60)}:${two(t % 60)}`;
  };
  const ticks = () => {
    const wanted = Math.max(2, Math.min(10, lane.clientWidth / 90));
    const step = STEPS.find((s) => s >= (to - from) / wanted) || 86400;
    axis.textContent = grid.textContent = "";
    for (let k = Math.ceil(from / step); k * step <= to + 1e-9; k++) {
      const x = `${(100 * k * step) / length}%`, shown = (k * step - from) / (to - from);
      draw(axis, "line", { x1: x, x2: x, y1: 13, y2: 18 });
      draw(grid, "line", { class: "grid", x1: x, x2: x, y2: "100%" });
      const anchor = shown < 0.02 ? "start" : shown > 0.97 ? "end" : "middle";
      draw(axis, "text", { x, y: 11, "text-anchor": anchor }).textContent = offset(k * step);
    }
  };
  const show = (a, b) => {
    const wide = Math.min(Math.max(b - a, LEAST), length);
    from = Math.min(Math.max(a, 0), length - wide);
    to = from + wide;
    planes.forEach((plane) => {
      plane.setAttribute("x", `${(-100 * from) / wide}%`);
      plane.setAttribute("width", `${(100 * length) / wide}%`);
    });
    gantt.dataset.from = from.toFixed(3);
    gantt.dataset.to = to.toFixed(3);
    ticks();
  };
  const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) * factor, at + (to - at) * factor);
  const pan = (share) => show(from + (to - from) * share, to + (to - from) * share);
  const act = { in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, length) };
  gantt.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", act[button.dataset.zoom]));

  // The same x for every lane: they share one column.
  const place = (event) => {
    const box = lane.getBoundingClientRect();
    return { box, share: Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) };
  };
  const time = (share) => from + share * (to - from);
  let drag = null;
  const point = (event) => {
    const inLane = event.target.closest && event.target.closest(".lane");
    if (!inLane && drag === null) { cross.hidden = true; return; }
    const { box, share } = place(event), left = box.left - gantt.getBoundingClientRect().left;
    const a = drag === null ? share : Math.min(drag, share), b = drag === null ? share : Math.max(drag, share);
    const tip = event.target.dataset ? event.target.dataset.tip : "";
    cross.hidden = false;
    cross.classList.toggle("range", drag !== null);
    cross.classList.toggle("flip", share > 0.6);
    cross.style.left = `${left + a * box.width}px`;
    cross.style.width = drag === null ? "1px" : `${(b - a) * box.width}px`;
    const moment = drag === null ? `+${offset(time(share))}${begin === null ? "" : ` · ${clock(time(share))}`}` : offset(time(b) - time(a));
    said.textContent = tip && drag === null ? `${tip}\n${moment}` : moment;
  };
  gantt.addEventListener("pointermove", point);
  gantt.addEventListener("pointerleave", () => { if (drag === null) cross.hidden = true; });
  gantt.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch" || !event.target.closest(".lane")) return;
    drag = place(event).share;
    event.preventDefault();
  });
  window.addEventListener("pointerup", (event) => {
    if (drag === null) return;
    const a = Math.min(drag, place(event).share), b = Math.max(drag, place(event).share);
    drag = null;
    cross.hidden = true;
    if (b - a > 0.01) show(time(a), time(b));
  });
  gantt.addEventListener("dblclick", (event) => { if (event.target.closest(".lane")) act.all(); });
  gantt.addEventListener("wheel", (event) => {
    if (!(event.ctrlKey || event.metaKey) || !event.target.closest(".lane")) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, time(place(event).share));
  }, { passive: false });

  const links = [...gantt.querySelectorAll(".phase a")];
  const step = (by) => {
    const here = links.indexOf(document.activeElement);
    const next = links[here < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(here + by, 0), links.length - 1)];
    if (next) next.focus();
  };
  const keys = {
    "+": act.in, "=": act.in, "-": act.out, 0: act.all, ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25),
    ArrowUp: () => step(-1), ArrowDown: () => step(1),
  };
  const mine = () => gantt.contains(document.activeElement) || gantt === document.querySelector(".gantt") && document.activeElement === document.body;
  document.addEventListener("keydown", (event) => {
    const key = keys[event.key];
    if (!key || event.ctrlKey || event.metaKey || event.altKey || !mine()) return;
    if (document.activeElement === document.body && event.key.startsWith("Arrow") && from === 0 && to === length) return;
    event.preventDefault();
    key();
  });
  window.addEventListener("resize", ticks);
  show(0, length);
});
// A long page prints whole.
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.dataset.was = d.open; d.open = true; }));
window.addEventListener("afterprint", () => document.querySelectorAll("details").forEach((d) => { d.open = d.dataset.was === "true"; }));
