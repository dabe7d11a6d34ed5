// The pages read and work without this file; it only saves steps. What comes from a log is set as text, never as markup.
"use strict";
document.documentElement.classList.add("js");
const formToken = document.querySelector('meta[name="form-token"]')?.content ?? "";
const PIECE = 1000; // lines of one request
const el = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};
async function problemOf(answer) {
  try {
    const said = await answer.json();
    return said.hint ? `${said.error}; ${said.hint}` : said.error;
  } catch { return `the server answered ${answer.status}`; }
}

// ---- copy buttons
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const label = button.firstChild;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    label.data = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    label.data = "Selected";
  }
  setTimeout(() => { label.data = "Copy"; }, 1500);
});

// ---- the log: fetched where the page is read, its gaps open in place
const part = document.getElementById("log-part");
async function loadLog() {
  const answer = await fetch(part.dataset.src);
  if (!answer.ok) return;
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html"); // escaped by the server; scripts do not run
  part.replaceChildren(...parsed.body.childNodes);
}
if (part) loadLog();
// A link to a line of the log, or to a line of evidence, stays on this page where it is shown here.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href*='#']");
  const there = link && link.pathname.startsWith(location.pathname.replace(/\/log$/, "")) && document.getElementById(link.hash.slice(1));
  if (!there || event.ctrlKey || event.metaKey) return;
  there.closest("details")?.setAttribute("open", "");
  if (link.pathname === location.pathname) return; // the browser goes there
  event.preventDefault();
  there.scrollIntoView({ block: "center" });
  document.querySelector(".l.here")?.classList.remove("here");
  there.classList.add("here");
});

document.addEventListener("click", (event) => {
  const link = event.target.closest(".gap a");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  openGap(link.closest(".gap"), event.shiftKey);
});
function openGap(gap) {
  const home = gap.closest(".lines");
  const opened = el("div", "opened");
  const more = el("button", "", "");
  const all = el("button", "", "all of them");
  more.type = all.type = "button";
  gap.before(opened);
  gap.replaceChildren(more, all);
  let next = Number(gap.dataset.first), stop = false;
  const last = Number(gap.dataset.last);
  const label = (working) => {
    const left = last - next + 1;
    more.textContent = working ? `… ${left.toLocaleString("en")} to come` : `… ${left.toLocaleString("en")} more lines`;
    all.hidden = left <= PIECE && !working;
    all.textContent = working ? "stop" : "all of them";
  };
  async function step() {
    const count = Math.min(PIECE, last - next + 1);
    const query = new URLSearchParams({ file: home.dataset.file, first: next, count });
    const answer = await fetch(`/api/v1/incidents/${home.dataset.incident}/lines?${query}`);
    if (!answer.ok) throw new Error(await problemOf(answer));
    const { lines } = await answer.json();
    const chunk = el("div", "chunk");
    for (const { line, text } of lines) {
      const row = el("div", "l");
      row.append(el("span", "n", line), el("span", "t log", text));
      chunk.append(row);
    }
    opened.append(chunk);
    next = lines.length ? lines.at(-1).line + 1 : last + 1;
    if (next > last) gap.remove();
    return next <= last;
  }
  async function run(all_) {
    try {
      do { label(all_); } while (await step() && all_ && !stop);
      if (gap.isConnected) label(false);
    } catch (error) { more.textContent = error.message; all.hidden = true; }
    stop = false;
    running = false;
  }
  let running = true;
  more.addEventListener("click", () => { if (!running) { running = true; run(false); } });
  all.addEventListener("click", () => { if (running) stop = true; else { running = true; run(true); } });
  run(false).then(() => (gap.isConnected ? more : home).focus({ preventScroll: true }));
}

// ---- upload and progress
const upload = document.getElementById("upload");
upload?.addEventListener("submit", (event) => {
  const size = [...upload.logs.files].reduce((sum, file) => sum + file.size, 0);
  const said = document.getElementById("upload-said");
  if (size > Number(upload.dataset.most)) {
    event.preventDefault();
    said.textContent = `These are ${Math.ceil(size / 1048576).toLocaleString("en")} MB, more than may be sent. Pack them (gzip, zstd) first.`;
    return;
  }
  event.preventDefault();
  const request = new XMLHttpRequest(); // which tells how far it is
  const button = upload.querySelector("button");
  button.disabled = true;
  request.upload.addEventListener("progress", (e) => { said.textContent = `${Math.round(100 * e.loaded / e.total)} % sent`; });
  request.addEventListener("load", () => {
    const answer = JSON.parse(request.responseText || "{}");
    if (request.status === 202) location.assign(`/jobs/${answer.id}`);
    else { said.textContent = answer.error ? `${answer.error}; ${answer.hint ?? ""}` : `the server answered ${request.status}`; button.disabled = false; }
  });
  request.addEventListener("error", () => { said.textContent = "The connection broke; try again."; button.disabled = false; });
  request.open("POST", "/api/v1/jobs");
  request.setRequestHeader("x-csrf-token", formToken);
  request.send(new FormData(upload));
});
const job = document.getElementById("job");
if (job) {
  const events = new EventSource(`/api/v1/jobs/${job.dataset.id}/events`);
  events.addEventListener("job", ({ data }) => {
    const now = JSON.parse(data);
    document.getElementById("job-said").textContent = `${now.state}: ${now.said}${now.ahead ? `; ${now.ahead} before it` : ""}`;
    if (now.state === "done") { events.close(); location.replace(`/incidents/${now.incident}`); }
    if (now.state === "failed") { events.close(); location.reload(); }
  });
}

// ---- chat
const ask = document.getElementById("ask"), turns = document.getElementById("turns");
if (turns) turns.scrollTop = turns.scrollHeight;
async function put(said) {
  const button = ask.querySelector("button");
  button.disabled = true;
  turns.append(el("div", "asked", said));
  const answer = turns.appendChild(el("div", "answer"));
  answer.setAttribute("aria-busy", "true");
  const shown = {
    text: (e) => {
      if (answer.lastElementChild?.className !== "text log") answer.append(el("div", "text log", ""));
      answer.lastElementChild.append(e.text);
    },
    cited: (e) => {
      const cite = el("div", "cite log");
      if (e.id) { const link = el("a", "", e.id); link.href = `#${e.id}`; cite.append(link, " "); }
      cite.append(`${e.file}:${e.line} `, el("span", "", e.text));
      answer.append(cite);
    },
    tool: (e) => answer.append(el("p", "note", `looked: ${e.name} ${e.words}`)),
    note: (e) => answer.append(el("p", "note", e.text)),
    asks: (e) => answer.append(el("p", "asks", e.text)),
    done: () => {},
  };
  try {
    const reply = await fetch(ask.dataset.api, {
      method: "POST", headers: { "content-type": "application/json", "x-csrf-token": formToken }, body: JSON.stringify({ said }),
    });
    if (!reply.ok) throw new Error(await problemOf(reply));
    let rest = "";
    for (const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
      const { value, done } = await reader.read();
      if (done) break;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const [, kind, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
        if (kind in shown) shown[kind](JSON.parse(data));
      }
      answer.lastElementChild?.scrollIntoView({ block: "nearest" });
    }
  } catch (error) { answer.append(el("p", "warning", error.message)); }
  answer.removeAttribute("aria-busy");
  button.disabled = false;
}
ask?.addEventListener("submit", (event) => {
  event.preventDefault();
  const said = ask.said.value.trim();
  if (said && !ask.querySelector("button").disabled) { ask.said.value = ""; put(said); }
});
ask?.said.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); ask.requestSubmit(); }
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-ask]");
  if (button && !ask.querySelector("button").disabled) put(button.dataset.ask);
});
