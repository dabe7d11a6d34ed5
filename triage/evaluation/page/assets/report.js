(() => {
  "use strict";
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  root.classList.add("js");

  // ---- theme: as the system says, or as chosen; remembered where the browser allows it for this page
  const THEMES = ["auto", "light", "dark"];
  const remember = {
    get() { try { return localStorage.getItem("triage-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("triage-theme", value); } catch { /* a file may have no storage */ } },
  };
  const theme = byId("theme");
  const paint = (name) => {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
  };
  let chosen = THEMES.includes(remember.get()) ? remember.get() : "auto";
  paint(chosen);
  theme.addEventListener("click", () => {
    chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
    paint(chosen);
    remember.set(chosen);
  });

  // ---- filters: as the controls say; without any, the cases that matter first
  const list = byId("case-list");
  const cases = [...list.children];
  const words = new Map();
  const textOf = (item) => {
    if (!words.has(item)) words.set(item, item.textContent.toLowerCase());
    return words.get(item);
  };
  const SEVERAL = ["show", "tags", "split"]; // a case may have more than one value of these
  const ONE = ["want", "got", "outcome", "status"];
  const FILTERS = ["text", ...SEVERAL, ...ONE];
  const control = (name) => byId(`f-${name}`);
  const value = (name) => control(name)?.value ?? "";
  const shown = () => cases.filter((item) => !item.hidden);
  const first = cases.filter((item) => "first" in item.dataset);
  let everything = first.length === 0 || first.length === cases.length;

  function apply() {
    const wanted = value("text").toLowerCase().split(/\s+/).filter(Boolean);
    const fold = !everything && value("order") === "place" && FILTERS.every((n) => !value(n));
    for (const item of cases) {
      item.hidden = fold ? !("first" in item.dataset) : !(
        SEVERAL.every((n) => !value(n) || item.dataset[n].split(" ").includes(value(n)))
        && ONE.every((n) => !value(n) || item.dataset[n] === value(n))
        && wanted.every((w) => textOf(item).includes(w)));
    }
    const n = shown().length;
    byId("f-count").textContent = n === cases.length ? `${n} cases`
      : `${n} of ${cases.length} cases${fold ? ": wrong, or with a costly mistake" : ""}`;
    byId("f-none").hidden = n > 0;
    byId("f-rest").hidden = !fold;
  }
  function order() {
    const key = value("order");
    const name = (item) => item.querySelector(".id").textContent;
    const compare = {
      place: (a, b) => a.dataset.place - b.dataset.place,
      case: (a, b) => name(a).localeCompare(name(b), "en", { numeric: true }),
      want: (a, b) => a.dataset.want.localeCompare(b.dataset.want) || a.dataset.place - b.dataset.place,
      seconds: (a, b) => b.dataset.seconds - a.dataset.seconds,
    }[key];
    list.append(...cases.sort(compare));
  }

  // ---- filters in the address: a view can be sent on, and Back leads to the one before
  function query() {
    const found = new URLSearchParams();
    for (const name of FILTERS) if (value(name)) found.set(name, value(name));
    return found.toString();
  }
  function set(text) {
    const found = new URLSearchParams(text);
    for (const name of FILTERS) {
      const box = control(name);
      if (box) box.value = found.get(name) ?? "";
      if (box && box.selectedIndex === -1) box.value = ""; // a value that this run has not
    }
    apply();
  }
  const address = (text) => (text ? `#cases?${text}` : "#cases");
  function keep(replace) {
    const text = query();
    history[replace ? "replaceState" : "pushState"]({ filters: text }, "", address(text));
  }
  function arrive() {
    const asked = /^#cases\?(.*)$/.exec(location.hash);
    const before = history.state?.filters; // an entry that was left: Back or Forward led here
    if (before !== undefined) set(before);
    else if (asked) set(asked[1]);
    else apply();
    if (asked && before === undefined) byId("cases").scrollIntoView();
    else reveal();
    history.replaceState({ filters: query() }, "");
  }
  const form = document.querySelector(".filters");
  const clear = () => { set(""); keep(); };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    apply();
    return event.target.id === "f-order" ? order() : keep(event.target.id === "f-text" && new URLSearchParams(history.state?.filters).has("text")); // a word is one step back
  });
  byId("f-clear").addEventListener("click", clear);
  byId("f-clear-too").addEventListener("click", clear);
  byId("f-rest").addEventListener("click", () => {
    const next = cases.find((item) => item.hidden);
    everything = true;
    apply();
    next?.querySelector("summary").focus({ preventScroll: true });
  });
  byId("f-open").addEventListener("click", (event) => {
    const open = shown().some((item) => !item.open);
    for (const item of shown()) item.open = open;
    event.target.textContent = open ? "Close all shown" : "Open all shown";
  });

  // ---- links into the cases: a count leads to its cases, a link to a case opens it
  for (const link of document.querySelectorAll("a[data-set]")) link.setAttribute("href", address(link.dataset.set));
  function reveal() {
    const target = location.hash.length > 1 && byId(location.hash.slice(1));
    if (!target) return;
    const item = target.closest("details.case");
    if (item?.hidden) { everything = true; set(""); }
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    if (item) item.querySelector("summary").focus({ preventScroll: true });
    (item ?? target).scrollIntoView({ block: "start" });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) { // no change of address that would tell
      event.preventDefault();
      if (link.dataset.set !== undefined) set(link.dataset.set);
      const asked = link.dataset.set === undefined ? null : byId("cases");
      if (asked) asked.scrollIntoView(); else reveal();
    }
  });
  addEventListener("hashchange", arrive);
  arrive();

  // ---- tables that sort
  for (const table of document.querySelectorAll("table.sortable")) {
    table.querySelectorAll("thead th").forEach((head, column) => {
      if (!head.textContent || head.textContent === "Each case" || head.textContent === "Which") return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head, column));
    });
  }
  function sort(table, head, column) {
    const down = head.getAttribute("aria-sort") !== "descending" && (head.getAttribute("aria-sort") === "ascending" || isNumber(table, column));
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    const cell = (row) => row.cells[column].textContent;
    const number = (row) => { const x = parseFloat(cell(row)); return Number.isNaN(x) ? -1 : x; };
    const compare = isNumber(table, column) ? (a, b) => number(a) - number(b) : (a, b) => cell(a).localeCompare(cell(b));
    rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
    table.tBodies[0].append(...rows);
  }
  function isNumber(table, column) {
    return table.tBodies[0].rows[0]?.cells[column].classList.contains("num") ?? false;
  }

  // ---- the column under the pointer in a matrix
  for (const table of document.querySelectorAll("table.matrix")) {
    let lit = null;
    const light = (event) => {
      const cell = event.target.closest("td");
      lit?.classList.remove("col");
      lit = cell && table.tHead.rows[0].cells[cell.cellIndex];
      lit?.classList.add("col");
    };
    table.addEventListener("pointerover", light);
    table.addEventListener("focusin", light);
    table.addEventListener("pointerleave", () => lit?.classList.remove("col"));
  }

  // ---- where the reader is
  const places = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const watch = new IntersectionObserver((seen) => {
    for (const one of seen) places.get(one.target.id)?.classList.toggle("here", one.isIntersecting);
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const id of places.keys()) watch.observe(byId(id));
})();
