// What makes the pages nicer to use. Every page works without it.
//
// `npm run build` in web/ writes crates/forms/assets/page.js from this.

import { minutesLeft } from "../../form/src/behaviour/clock.js";
import { growing } from "../../form/src/behaviour/grow.js";
import { fold, searchable } from "../../form/src/behaviour/search.js";
import { stepped } from "../../form/src/behaviour/stepper.js";

const base = document.body.dataset.base;
const form = document.querySelector("form[data-question]");
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

let claimTimer = 0;
// The time from which a new confirmation may be pressed.
let confirmsFrom = 0;
let watching = false;
presses();
remember();
// What was just done is said once, not again when the page is loaded again.
if (new URLSearchParams(location.search).has("did")) history.replaceState(null, "", location.pathname);
for (const only of all("[data-js]")) only.hidden = false;
localTimes(document);

countdown();
if (form) question(form);
const search = document.querySelector("[data-search]");
if (search) queue(search);
const watched = document.querySelector("[data-watch]");
if (watched) watch(watched);
if (document.body.dataset.events) listen();
claimEnds();
closing();
const push = document.querySelector("[data-push]");
if (push) notifications(push);
badge(document.querySelector("[data-queue]")?.dataset.pending ?? (form && document.querySelector("[data-count]")?.textContent));

// ---- where the pages are ----

// Pages for people who are signed in lie below a path that no link tells. What this origin stores is read by no other
// server on this machine, as cookies would be; so a link without the path finds the way from here.
function remember() {
  try {
    if (document.body.dataset.events) {
      localStorage.setItem(`mcp-elicit ${base.slice(0, base.lastIndexOf("/"))}`, base);
    }
    const { enter } = document.body.dataset;
    const known = enter && localStorage.getItem(`mcp-elicit ${base}`);
    if (known && known.startsWith(`${base}/`) && /^[A-Za-z0-9_-]{32,}$/.test(known.slice(base.length + 1))) {
      const search = location.pathname.endsWith("/login") ? "" : location.search;
      location.replace(known + enter + search);
    }
  } catch {
    // Storage that is switched off: the page says how to sign in.
  }
}

// ---- presses ----

// A page that has only just come up may lie under a press that was meant for what was there before, such as the second
// click of a double click on another site's window. Until it has been up for a moment, nothing in it is pressed.
function presses() {
  const state = document.body.dataset;
  let timer = 0;
  let isEarly = false;
  let forgetting = 0;
  const wait = () => {
    state.fresh = "";
    clearTimeout(timer);
    timer = setTimeout(() => { delete state.fresh; }, 1_000);
  };
  // Whoever presses again and again goes on with what they did elsewhere, also if they have hit nothing yet.
  const goesOn = (event) => {
    const isModifier = ["Shift", "Control", "Alt", "Meta"].includes(event.key);
    if (!event.isTrusted || isModifier) return;
    if ("fresh" in state) {
      wait();
      isEarly = true;
    } else if (!event.repeat) {
      isEarly = false;
    }
    clearTimeout(forgetting);
  };
  // A press that began too early does not count when it is let go either, however long it was held.
  const ends = () => {
    clearTimeout(forgetting);
    forgetting = setTimeout(() => { isEarly = false; }, 500);
  };
  const refuse = (event) => {
    const acts = event.type === "submit" ? event.target : event.target.closest("button, [data-open], input[type=submit]");
    const form = acts?.closest("form[method=post], dialog");
    if (!form || !("fresh" in state || isEarly)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    wait();
    const said = form.querySelector("[data-early]") ?? form.appendChild(document.createElement("p"));
    said.dataset.early = "";
    said.className = "hint";
    said.setAttribute("role", "alert");
    said.textContent = "Nothing was pressed: this page had only just come up. Wait a second, then press again.";
  };
  wait();
  addEventListener("pageshow", wait);
  addEventListener("focus", wait);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wait(); });
  document.addEventListener("pointerdown", goesOn, true);
  document.addEventListener("keydown", goesOn, true);
  for (const end of ["pointerup", "pointercancel", "keyup"]) document.addEventListener(end, ends, true);
  document.addEventListener("click", refuse, true);
  document.addEventListener("submit", refuse, true);
  // A key may still be held down from the page before: it presses nothing until it was let go.
  document.addEventListener("keydown", (event) => {
    const acts = event.target.closest("button, a");
    if (event.repeat && ["Enter", " "].includes(event.key) && acts) event.preventDefault();
  });
}

// ---- times ----

// Written in UTC by the server; here by the reader's clock, with its zone.
function localTimes(root) {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, {
    day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short",
  });
  for (const time of all("time[data-local]", root)) time.textContent = format.format(new Date(time.dateTime));
}

// ---- time left ----

function countdown() {
  const loaded = Date.now();
  const clocks = () =>
    all("[data-left]").map((clock) => {
      clock.dataset.end ??= String(loaded + Number(clock.dataset.left));
      return [clock, Number(clock.dataset.end) - Date.now()];
    });
  const tick = () => {
    for (const [clock, left] of clocks()) {
      clock.querySelector("[data-words]").textContent = words(Math.max(0, left));
      clock.classList.toggle(clock.classList.contains("tag") ? "warn" : "short", left <= 30_000);
      // The server's clock decides; we only ask it again a moment later.
      if (left <= -1_000 && form && !clock.dataset.over) {
        clock.dataset.over = "yes";
        location.replace(form.dataset.question);
      }
    }
  };
  if (clocks().length || document.querySelector("[data-queue]")) setInterval(tick, 1_000);
}

// The same words as the server's.
function words(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1_000);
  const hours = Math.floor(seconds / 3_600);
  if (hours === 0) return minutesLeft(seconds);
  const minutes = String(Math.floor(seconds / 60) % 60).padStart(2, "0");
  return hours < 48 ? `${hours} h ${minutes} min` : `${Math.floor(hours / 24)} days`;
}

// ---- a question ----

function question(form) {
  // Our own messages, beside the field, instead of the browser's bubbles.
  form.noValidate = true;
  for (const stepper of all("[data-stepper]", form)) steps(stepper);
  for (const list of all("[data-list]", form)) options(list);
  for (const input of all("[data-grows]", form)) growing(input, () => {});
  for (const zone of all("[data-zone]", form)) {
    if (!zone.value) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  }
  const live = form.dataset.live && all("[data-field]", form).length ? checks(form) : null;
  keys(form);
  visit(form);
  // One press is enough; a second one would only be told that the question is closed.
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) return event.preventDefault();
    const half = all("[data-field]", form).filter(unfinished);
    if (half.length && !event.submitter?.formNoValidate) {
      event.preventDefault();
      for (const field of half) mark(field, unfinished(field));
      return half[0].querySelector("input").focus();
    }
    sent = true;
    live?.stop();
  });
  addEventListener("pageshow", () => { sent = false; });
}

// Saves what was typed, and shows what the form's own check says about it.
function checks(form) {
  const kept = form.querySelector("[data-kept]");
  const touched = new Set(all(".field.wrong", form).map((field) => field.dataset.field));
  let timer = 0;
  let dirty = false;
  let stopped = false;
  let turn = 0;

  const body = () => new URLSearchParams(new FormData(form));

  const send = async () => {
    clearTimeout(timer);
    // A closed form has no values to save; what was typed before was saved when it was closed.
    if (stopped || closed()) return;
    dirty = false;
    const mine = ++turn;
    try {
      const reply = await fetch(form.dataset.live, { method: "POST", body: body(), redirect: "error" });
      if (!reply.ok) {
        kept.textContent = reply.status === 413 ? "Too long to keep" : "";
        return;
      }
      const { wrong } = await reply.json();
      if (mine !== turn || stopped) return;
      for (const field of all("[data-field]", form)) {
        const key = field.dataset.field;
        if (touched.has(key)) mark(field, unfinished(field) ?? wrong[key] ?? []);
      }
      kept.textContent = "Saved";
    } catch {
      kept.textContent = "Not saved: no connection";
    }
  };

  const later = () => {
    dirty = true;
    kept.textContent = "";
    clearTimeout(timer);
    timer = setTimeout(send, 400);
  };

  form.addEventListener("input", (event) => {
    if (event.target.type === "search") return;
    form.dataset.typed = "";
    later();
  });
  // A field is judged once it has been left, not while it is being filled in for the first time.
  form.addEventListener("focusout", (event) => {
    const field = event.target.closest("[data-field]");
    if (!field || field.contains(event.relatedTarget) || event.target.type === "search") return;
    if (!("typed" in form.dataset)) return;
    touched.add(field.dataset.field);
    later();
  });
  form.addEventListener("change", (event) => {
    const field = event.target.closest("[data-field]");
    if (field && ["radio", "checkbox"].includes(event.target.type)) touched.add(field.dataset.field);
  });
  document.addEventListener("closing", () => { if (dirty) send(); });
  addEventListener("pagehide", () => {
    if (dirty && !stopped && !closed()) fetch(form.dataset.live, { method: "POST", body: body(), keepalive: true }).catch(() => {});
  });
  return { stop: () => { stopped = true; clearTimeout(timer); } };
}

// A date that is half typed has no value yet, so only the browser can tell.
function unfinished(field) {
  return all("input", field).some((input) => input.validity.badInput) ? ["is not complete yet"] : null;
}

function mark(field, messages) {
  const list = field.querySelector(".errors");
  const said = all("li", list).map((line) => line.textContent);
  field.classList.toggle("wrong", messages.length > 0);
  const control = field.matches("fieldset") ? field : field.querySelector(".in");
  if (messages.length) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
  if (said.join("\n") === messages.join("\n")) return;
  list.replaceChildren(...messages.map((message) => {
    const line = document.createElement("li");
    line.textContent = message;
    return line;
  }));
  settle(field.dataset.field, messages.length === 0);
}

// The summary at the top loses what has been put right.
function settle(key, right) {
  const summary = document.getElementById("problems");
  if (!summary) return;
  for (const line of all("[data-problem]", summary)) if (line.dataset.problem === key) line.hidden = right;
  const left = all("[data-problem]:not([hidden])", summary).length;
  summary.hidden = left === 0;
  summary.querySelector("[data-problems]").textContent =
    left === 1 ? "One answer needs another look" : `${left} answers need another look`;
}

// Escape asks whether to cancel; Ctrl+Enter goes on. What was typed is not dropped without asking.
function keys(form) {
  let typed = false;
  form.addEventListener("input", (event) => { if (event.target.type !== "search") typed = true; });
  addEventListener("keydown", (event) => {
    // A key that is held down decides nothing.
    if (event.defaultPrevented || event.isComposing || event.repeat) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      const open = form.querySelector("[data-open]");
      const go = form.querySelector("[data-answers]");
      if (open) open.click();
      else if (go && !go.disabled) form.requestSubmit(go);
    }
    if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
    const cancel = form.querySelector("[data-act=cancel]");
    // With several people asked, nobody dismisses the question for all.
    if (!cancel) return;
    event.preventDefault();
    ask(document.getElementById("leave-cancel"));
  });
  const hasTyped = () => typed || "typed" in form.dataset;
  const ask = (sure) => {
    for (const dropped of all("[data-dropped]", sure)) dropped.hidden = !hasTyped();
    sure.showModal();
  };
  form.addEventListener("click", (event) => {
    const act = event.target.closest("[data-act]")?.dataset.act;
    const sure = document.getElementById(`leave-${act}`);
    if (!sure || !hasTyped()) return;
    event.preventDefault();
    ask(sure);
  });
  for (const sure of all("dialog")) {
    sure.addEventListener("click", (event) => {
      if (event.target.closest("[data-leave]")) sure.close();
    });
  }
}

// Less and more, with whole decimals: 0.1 + 0.2 is 0.3, and a number of twenty digits keeps them all.
function steps(stepper) {
  const input = stepper.querySelector("input");
  const { step, least, most } = stepper.dataset;
  const move = (direction) => {
    const next = stepped(input.value, step || "1", least ?? "", most ?? "", direction);
    if (next === null) return;
    input.value = next;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };
  for (const button of all("button", stepper)) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      move(button.value.endsWith(":up") ? 1n : -1n);
    });
  }
  input.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    move(event.key === "ArrowUp" ? 1n : -1n);
  });
}

// A list with a box to search in.
function options(list) {
  const find = list.querySelector(".find");
  const tally = list.querySelector(".tally");
  const picks = all(".pick", list);
  let shown = null;
  find.hidden = false;
  const count = () => {
    const chosen = picks.filter((pick) => pick.firstElementChild.checked && pick.firstElementChild.value !== "");
    const names = chosen.slice(0, 3).map((pick) => pick.textContent.trim()).join(", ");
    const rest = chosen.length > 3 ? ` and ${chosen.length - 3} more` : "";
    tally.textContent = [
      shown === null ? "" : shown === 1 ? "1 option matches." : `${shown} options match.`,
      chosen.length ? `Chosen: ${names}${rest}` : "",
    ].join(" ").trim();
  };
  searchable(find, picks, (found) => {
    shown = found;
    count();
  });
  list.addEventListener("change", count);
  const first = picks.find((pick) => pick.firstElementChild.checked);
  if (first) first.parentElement.scrollTop = first.offsetTop - first.parentElement.offsetTop - 40;
  count();
}

// Opening the page is agreeing to it, as in the terminal: the browser opens the tab itself, then the server is told.
function visit(form) {
  const open = form.querySelector("[data-open]");
  const done = form.querySelector("[data-done]");
  open?.addEventListener("click", () => setTimeout(() => form.requestSubmit(done)));
}

// ---- the queue ----

function queue(search) {
  const find = search.querySelector("input");
  const rows = () => all(".rowlink");
  const filter = () => {
    // The other views are searched for the same.
    for (const view of all(".views a")) {
      const address = new URL(view.href);
      if (find.value) address.searchParams.set("find", find.value);
      else address.searchParams.delete("find");
      view.href = address;
    }
    const words = fold(find.value).split(/\s+/);
    for (const row of rows()) {
      // As the server searches: its id and its rule, too.
      const text = fold([row.textContent, ...Object.values(row.parentElement.dataset)].join(" "));
      row.parentElement.hidden = !words.every((word) => text.includes(word));
    }
    const found = rows().filter((row) => !row.parentElement.hidden).length;
    for (const list of all("[data-queue] .rows")) {
      list.hidden = all("[data-row]", list).every((row) => row.hidden);
      document.getElementById(list.getAttribute("aria-labelledby")).hidden = list.hidden;
    }
    const isEmpty = Boolean(find.value.trim()) && found === 0;
    for (const none of all("[data-none]")) none.hidden = !isEmpty;
    for (const idle of all("[data-idle]")) idle.hidden = isEmpty;
    // What is found is said in place of what waits.
    const news = document.querySelector("[data-news]");
    const said = !find.value.trim() ? news.dataset.waiting
      : found === 0 ? "Nothing matches"
      : found === 1 ? "One question matches" : `${found} questions match`;
    if (news.textContent !== said) news.textContent = said;
  };
  let timer = 0;
  find.addEventListener("input", () => {
    filter();
    // More wait than are shown: the server looks through them all.
    clearTimeout(timer);
    if ("more" in search.dataset) timer = setTimeout(renewQueue, 300);
  });
  search.addEventListener("submit", (event) => {
    event.preventDefault();
    rows().find((row) => !row.parentElement.hidden)?.focus();
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && document.activeElement !== find) {
      event.preventDefault();
      find.focus();
    }
    if (event.key === "Escape" && document.activeElement === find) {
      find.value = "";
      filter();
    }
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    const shown = rows().filter((row) => !row.parentElement.hidden);
    const at = shown.indexOf(document.activeElement);
    const next = shown[at < 0 ? (by > 0 ? 0 : -1) : at + by];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
  document.addEventListener("queue", filter);
}

// ---- news from the server ----

// Browsers allow few connections to one place, so only a page that is looked at holds one, or that is to notify.
function listen() {
  let source = null;
  let seen = null;
  const news = async (event) => {
    if (event.data === seen) return;
    seen = event.data;
    if (document.querySelector("[data-queue]")) await renewQueue();
    else await renewQuestion();
  };
  const update = () => {
    if (document.hidden && !watching) {
      source?.close();
      source = null;
    } else if (!source) {
      source = new EventSource(document.body.dataset.events);
      // Whoever answers now may have counted from the start: what is said next is new in any case.
      source.addEventListener("open", () => { seen = null; });
      source.addEventListener("change", news);
      source.addEventListener("error", reach);
    }
  };
  document.addEventListener("visibilitychange", update);
  addEventListener("pagehide", () => { source?.close(); source = null; });
  addEventListener("pageshow", update);
  update();
}

// A page outlives the program that made it. It must not look as if an answer could still be given.
let unreached = 0;
async function reach() {
  const reply = await fetch(form?.dataset.state ?? `${base}/state`).catch(() => null);
  unreached = reply ? 0 : unreached + 1;
  const said = unreached > 1 && (form || search)
    ? "The program that asks has ended, or cannot be reached. Nothing that you do on this page arrives."
    : "";
  // After the end of a question nothing is lost with the program, but its links lead nowhere any more.
  if (document.querySelector("[data-notice]")) {
    if (unreached > 1) mayClose();
    for (const link of all("[data-notice] .act, .top nav")) link.hidden = unreached > 1;
    const home = document.querySelector("a.mark");
    if (home && unreached > 1) home.removeAttribute("href");
  }
  const place = document.querySelector("[data-gone]");
  if (place.textContent === said) return;
  place.textContent = said;
  place.className = said && "note bad";
  // Its elements, since some buttons of the form stand outside of it.
  for (const control of form?.elements ?? []) {
    if (control.type === "submit") control.disabled = Boolean(said) || (closed() && "answers" in control.dataset);
  }
}

async function renewQueue() {
  const old = document.querySelector("[data-queue]");
  const search = document.querySelector("[data-search]");
  const address = new URL(location.href);
  if ("more" in search.dataset) address.searchParams.set("find", search.querySelector("input").value);
  const reply = await fetch(address).catch(() => null);
  if (!reply?.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = page.querySelector("[data-queue]");
  if (!fresh) return;
  const known = new Set(all("[data-row]", old).map((row) => row.dataset.row));
  for (const row of all("[data-row]", fresh)) if (!known.has(row.dataset.row)) row.classList.add("new");
  const focused = document.activeElement?.closest?.("[data-row]")?.dataset.row;
  for (const clock of all("[data-left]", fresh)) clock.dataset.end = String(Date.now() + Number(clock.dataset.left));
  // The text that is read out keeps its place, so that a change in it is noticed.
  const news = old.querySelector("[data-news]");
  const said = fresh.querySelector("[data-news]");
  news.dataset.waiting = said.dataset.waiting;
  said.replaceWith(news);
  old.replaceChildren(...fresh.childNodes);
  search.hidden = page.querySelector("[data-search]")?.hidden ?? search.hidden;
  if (Number(fresh.dataset.pending) > Number(old.dataset.pending)) notify(news.dataset.waiting);
  old.dataset.pending = fresh.dataset.pending;
  document.title = page.title;
  badge(fresh.dataset.pending);
  if (focused) document.querySelector(`[data-row="${CSS.escape(focused)}"] a`)?.focus();
  document.dispatchEvent(new Event("queue"));
}

async function renewQuestion() {
  const state = form?.dataset.state ?? `${base}/state`;
  const reply = await fetch(state).catch(() => null);
  if (!reply?.ok) return;
  const { open, pending } = await reply.json();
  for (const count of all("[data-count]")) {
    count.textContent = pending;
    count.hidden = pending === 0;
  }
  badge(pending);
  document.title = document.title.replace(/^(Error: )?(\(\d+\) )?/, (_, wrong = "") => wrong + (pending > 0 ? `(${pending}) ` : ""));
  // Answered elsewhere, withdrawn or over: the page that says so is the question's own.
  if (form && open === false) location.replace(form.dataset.question);
  else await renewTeam();
  if (pending > 0 && document.querySelector("[data-close]")) await renewNotice();
}

// ---- after the end ----

// The server may ask its next question a moment after it got an answer. Only then is there nothing more to do here.
function closing() {
  const early = document.querySelector("[data-early]");
  if (!early) return;
  early.querySelector("[data-go]").hidden = true;
  setTimeout(mayClose, 5_000);
}

function mayClose() {
  for (const again of all("[data-again]")) again.hidden = true;
  for (const go of all("[data-go]")) go.hidden = false;
}

// Another question waits: the notice leads to it.
async function renewNotice() {
  const reply = await fetch(location.href).catch(() => null);
  if (!reply?.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = page.querySelector("[data-notice]");
  if (!fresh || fresh.querySelector("[data-close]")) return;
  document.querySelector("[data-notice]").replaceWith(fresh);
}

// What others did: a claim, entered answers, a comment. It is said, and nothing that has the focus is lost without a word.
async function renewTeam() {
  if (!document.querySelector("[data-team]")) return;
  const reply = await fetch(form?.dataset.question ?? location.href).catch(() => null);
  if (!reply?.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const old = document.querySelector("[data-team]");
  const fresh = page.querySelector("[data-team]");
  if (!old || !fresh) return;
  localTimes(fresh);
  const told = document.querySelector("[data-told]");
  const focused = document.activeElement;
  const wasInside = old.contains(focused);
  // The very same control keeps the focus. One that has changed, such as a confirmation of other answers, does not.
  const kept = wasInside && all("button, summary, a", fresh).find((one) => one.outerHTML === focused.outerHTML);
  const digest = old.querySelector("[name=digest]")?.value;
  const known = new Set(all("[data-event]", old).map((line) => line.dataset.event));
  const opened = old.querySelector("details.course")?.open;
  // A comment that is being written beside a confirmation is kept.
  const written = old.querySelector(".reason [name=comment]");
  if (fresh.innerHTML !== old.innerHTML) old.replaceChildren(...fresh.childNodes);
  const comment = written?.value && old.querySelector(".reason [name=comment]");
  if (comment) {
    comment.value = written.value;
    comment.closest("details").open = true;
  }
  const course = old.querySelector("details.course");
  if (course && opened) course.open = true;
  // Nobody confirms by a press that was meant for the answers before, or for what was here before the confirmation.
  const confirm = old.querySelector("[name=digest]");
  if (confirm && confirm.value !== digest) confirmsFrom = Date.now() + 1_000;
  const early = confirmsFrom - Date.now();
  if (confirm && early > 0) {
    confirm.disabled = true;
    setTimeout(() => { confirm.disabled = false; }, early);
  }
  const wasClosed = closed();
  renewForm(page);
  const news = all("[data-event]", old)
    .filter((line) => !known.has(line.dataset.event))
    .map((line) => line.querySelector("[data-text]").textContent);
  if (news.length) told.textContent = `${news.join(". ")}.`;
  if (kept) kept.focus();
  else if (comment && focused === written) comment.focus();
  else if (wasInside || (!wasClosed && closed() && document.activeElement === document.body)) told.focus();
}

// While another person has claimed the question, the form is closed.
function closed() {
  return Boolean(form?.querySelector("[data-claim]"));
}

function renewForm(page) {
  const old = form?.querySelector("[data-held]");
  const fresh = page.querySelector("[data-held]");
  if (!old || !fresh) return;
  const was = closed();
  const is = Boolean(fresh.querySelector("[data-claim]"));
  if (is && !was) document.dispatchEvent(new Event("closing"));
  if (fresh.innerHTML !== old.innerHTML) old.replaceChildren(...fresh.childNodes);
  claimEnds();
  const go = form.querySelector("[data-answers]");
  if (is !== was) {
    // A page to visit has nothing typed in it, so it can be shown anew.
    if (!go) return location.reload();
    form.querySelector("[data-answering]")?.toggleAttribute("disabled", is);
    go.disabled = is;
  }
  // One thing to do next: to agree to entered answers, where there are any.
  const other = page.querySelector("[data-answers]");
  if (go && go.dataset.act === (other?.dataset.act ?? "accept") && form.querySelector("[data-answering]")) {
    go.classList.toggle("main", Boolean(other?.classList.contains("main")));
    go.hidden = !other;
  }
  // Where one agrees or declines beside the people, the form below says nothing else.
  // A person who confirms a decline, or reviews, keeps the form in sight.
  if (!document.querySelector(".reviewing, #leaving")) form.hidden = page.getElementById("answer")?.hidden ?? form.hidden;
}

// A claim ends by itself, and no event tells of it.
function claimEnds() {
  clearTimeout(claimTimer);
  const claim = form?.querySelector("[data-claim]");
  if (claim) claimTimer = setTimeout(renewTeam, Math.min(Number(claim.dataset.claim) + 500, 2 ** 31 - 1));
}

// ---- notifications of an open page ----

// Asked for by a press only. The choice is this browser's, for every page of the list.
function watch(place) {
  const [button, told] = place.children;
  const key = `mcp-elicit notify ${base}`;
  const chosen = (value) => {
    try {
      if (value === undefined) return localStorage.getItem(key) === "yes";
      if (value) localStorage.setItem(key, "yes");
      else localStorage.removeItem(key);
    } catch {
      // Storage that is switched off: the choice is this page's.
    }
    return value;
  };
  if (!("Notification" in window)) return;
  const set = (is) => {
    watching = is;
    button.setAttribute("aria-pressed", String(is));
  };
  place.hidden = false;
  set(Notification.permission === "granted" && Boolean(chosen()));
  button.addEventListener("click", async () => {
    const wants = !watching;
    if (wants && await Notification.requestPermission() !== "granted") {
      told.textContent = "Notifications of this inbox are not allowed in this browser.";
      return;
    }
    chosen(wants);
    set(wants);
    told.textContent = wants ? "You are notified when another question waits for you." : "";
  });
}

// No more than that something waits: whoever sees the screen reads it.
function notify(body) {
  if (!watching || !document.hidden) return;
  try {
    const shown = new Notification("Inbox", { body, tag: `mcp-elicit ${base}`, icon: `${base}/assets/icon-192.png` });
    shown.addEventListener("click", () => { window.focus(); shown.close(); });
  } catch {
    // Some telephones show notifications of installed apps only.
  }
}

// ---- notifications and the installed app ----

// The number of questions that wait, on the icon of the installed app.
function badge(count) {
  if (count === undefined || count === null || !document.querySelector("link[rel=manifest]")) return;
  navigator.setAppBadge?.(Number(count) || 0).catch(() => {});
}

async function notifications(section) {
  const told = section.querySelector("[data-push-told]");
  const button = section.querySelector("[data-notify]");
  const say = (text) => { told.textContent = text; };
  if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window)) {
    button?.remove();
    return say("This browser shows no notifications of this inbox. On a telephone, install the inbox as an app first.");
  }
  const worker = await navigator.serviceWorker.register(`${base}/assets/sw.js`, { scope: `${base}/` }).catch(() => null);
  if (!worker) return say("The browser refuses to show notifications of this inbox.");
  section.dataset.ready = "";
  button?.addEventListener("click", async () => {
    button.disabled = true;
    try {
      if (await Notification.requestPermission() !== "granted") throw "Notifications of this inbox are not allowed in this browser.";
      const ready = await navigator.serviceWorker.ready;
      const applicationServerKey = section.dataset.key;
      // The gateway's key may have changed since.
      await (await ready.pushManager.getSubscription())?.unsubscribe();
      const made = await ready.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
        .catch(() => { throw "The browser's push service cannot be reached."; });
      const { endpoint, keys } = made.toJSON();
      const reply = await fetch(`${base}/account/devices`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ csrf: section.dataset.csrf, endpoint, keys }),
        redirect: "error",
      });
      if (!reply.ok) {
        await made.unsubscribe();
        throw (await reply.json().catch(() => ({}))).error;
      }
      location.reload();
    } catch (why) {
      say(typeof why === "string" ? why : "This device could not be added. Try again later.");
      button.disabled = false;
    }
  });
  // The browser forgets its subscription, too.
  section.querySelector("[data-own-device]")?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { currentTarget: form, submitter } = event;
    const known = await worker.pushManager.getSubscription().catch(() => null);
    await known?.unsubscribe().catch(() => {});
    sendOnce(form, submitter);
  });
}

function sendOnce(form, button) {
  const value = document.createElement("input");
  Object.assign(value, { type: "hidden", name: button.name, value: button.value });
  form.append(value);
  form.submit();
}
