// Made by `npm run build` in web/ from web/packages/inbox/src/page.js: change it there.

// packages/form/src/behaviour/clock.ts
function minutesLeft(seconds) {
  return seconds < 3600 ? `${Math.floor(seconds / 60)}:${`${seconds % 60}`.padStart(2, "0")}` : null;
}

// packages/form/src/behaviour/grow.ts
function growing(input, replaced) {
  input.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!/[\r\n]/.test(text.trim())) return;
    event.preventDefault();
    const area = document.createElement("textarea");
    for (const { name, value } of input.attributes) if (name !== "type" && name !== "value") area.setAttribute(name, value);
    area.rows = 4;
    area.value = input.value.slice(0, input.selectionStart) + text + input.value.slice(input.selectionEnd);
    input.replaceWith(area);
    replaced(area);
    area.focus();
    area.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  });
}

// packages/form/src/behaviour/search.ts
var fold = (text) => text.trim().toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
function searchable(find, options2, tell) {
  const texts = options2.map((option) => fold(option.textContent));
  const shown = () => options2.filter((option) => !option.hidden);
  const input = (option) => option?.querySelector("input");
  const filter = () => {
    const wanted = fold(find.value);
    options2.forEach((option, i) => option.hidden = !texts[i].includes(wanted));
    tell(wanted ? shown().length : null);
  };
  find.addEventListener("input", filter);
  find.addEventListener("keydown", (event) => {
    const { key } = event;
    if (key === "Escape" && find.value) {
      find.value = "";
      filter();
    } else if (key === "ArrowDown") input(shown()[0])?.focus();
    else if (key === "Enter" && !event.ctrlKey && !event.metaKey) {
      if (shown().length === 1) input(shown()[0])?.click();
    } else return;
    event.preventDefault();
  });
}

// packages/form/src/behaviour/stepper.ts
function stepped(value, step, least, most, direction) {
  const read = (text) => /^\s*([+-]?)(\d*)(?:\.(\d*))?\s*$/.exec(text);
  const empty = !value.trim();
  const texts = [empty ? least || "0" : value, step, least, most].map((text) => text ? read(text) : null);
  const places = Math.max(...texts.map((parts) => parts?.[3]?.length ?? 0));
  const [now, by, low, high] = texts.map((parts) => parts && BigInt(parts[1] + (parts[2] || "0") + (parts[3] ?? "").padEnd(places, "0")));
  if (now == null || by == null) return null;
  let next = empty ? now : now + direction * by;
  if (low != null && next < low) next = low;
  if (high != null && next > high) next = high;
  const digits = `${next < 0n ? -next : next}`.padStart(places + 1, "0");
  const fraction = places ? `.${digits.slice(-places)}`.replace(/\.?0+$/, "") : "";
  return (next < 0n ? "-" : "") + digits.slice(0, digits.length - places) + fraction;
}

// packages/inbox/src/page.js
var base = document.body.dataset.base;
var form = document.querySelector("form[data-question]");
var all = (selector, root = document) => [...root.querySelectorAll(selector)];
var claimTimer = 0;
var confirmsFrom = 0;
var watching = false;
presses();
remember();
if (new URLSearchParams(location.search).has("did")) history.replaceState(null, "", location.pathname);
for (const only of all("[data-js]")) only.hidden = false;
localTimes(document);
countdown();
if (form) question(form);
var search = document.querySelector("[data-search]");
if (search) queue(search);
var watched = document.querySelector("[data-watch]");
if (watched) watch(watched);
if (document.body.dataset.events) listen();
claimEnds();
closing();
var push = document.querySelector("[data-push]");
if (push) notifications(push);
badge(document.querySelector("[data-queue]")?.dataset.pending ?? (form && document.querySelector("[data-count]")?.textContent));
function remember() {
  try {
    if (document.body.dataset.events) {
      localStorage.setItem(`mcp-elicit ${base.slice(0, base.lastIndexOf("/"))}`, base);
    }
    const { enter } = document.body.dataset;
    const known = enter && localStorage.getItem(`mcp-elicit ${base}`);
    if (known && known.startsWith(`${base}/`) && /^[A-Za-z0-9_-]{32,}$/.test(known.slice(base.length + 1))) {
      const search2 = location.pathname.endsWith("/login") ? "" : location.search;
      location.replace(known + enter + search2);
    }
  } catch {
  }
}
function presses() {
  const state = document.body.dataset;
  let timer = 0;
  let isEarly = false;
  let forgetting = 0;
  const wait = () => {
    state.fresh = "";
    clearTimeout(timer);
    timer = setTimeout(() => {
      delete state.fresh;
    }, 1e3);
  };
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
  const ends = () => {
    clearTimeout(forgetting);
    forgetting = setTimeout(() => {
      isEarly = false;
    }, 500);
  };
  const refuse = (event) => {
    const acts = event.type === "submit" ? event.target : event.target.closest("button, [data-open], input[type=submit]");
    const form2 = acts?.closest("form[method=post], dialog");
    if (!form2 || !("fresh" in state || isEarly)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    wait();
    const said = form2.querySelector("[data-early]") ?? form2.appendChild(document.createElement("p"));
    said.dataset.early = "";
    said.className = "hint";
    said.setAttribute("role", "alert");
    said.textContent = "Nothing was pressed: this page had only just come up. Wait a second, then press again.";
  };
  wait();
  addEventListener("pageshow", wait);
  addEventListener("focus", wait);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) wait();
  });
  document.addEventListener("pointerdown", goesOn, true);
  document.addEventListener("keydown", goesOn, true);
  for (const end of ["pointerup", "pointercancel", "keyup"]) document.addEventListener(end, ends, true);
  document.addEventListener("click", refuse, true);
  document.addEventListener("submit", refuse, true);
  document.addEventListener("keydown", (event) => {
    const acts = event.target.closest("button, a");
    if (event.repeat && ["Enter", " "].includes(event.key) && acts) event.preventDefault();
  });
}
function localTimes(root) {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    timeZoneName: "short"
  });
  for (const time of all("time[data-local]", root)) time.textContent = format.format(new Date(time.dateTime));
}
function countdown() {
  const loaded = Date.now();
  const clocks = () => all("[data-left]").map((clock) => {
    clock.dataset.end ??= String(loaded + Number(clock.dataset.left));
    return [clock, Number(clock.dataset.end) - Date.now()];
  });
  const tick = () => {
    for (const [clock, left] of clocks()) {
      clock.querySelector("[data-words]").textContent = words(Math.max(0, left));
      clock.classList.toggle(clock.classList.contains("tag") ? "warn" : "short", left <= 3e4);
      if (left <= -1e3 && form && !clock.dataset.over) {
        clock.dataset.over = "yes";
        location.replace(form.dataset.question);
      }
    }
  };
  if (clocks().length || document.querySelector("[data-queue]")) setInterval(tick, 1e3);
}
function words(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1e3);
  const hours = Math.floor(seconds / 3600);
  if (hours === 0) return minutesLeft(seconds);
  const minutes = String(Math.floor(seconds / 60) % 60).padStart(2, "0");
  return hours < 48 ? `${hours} h ${minutes} min` : `${Math.floor(hours / 24)} days`;
}
function question(form2) {
  form2.noValidate = true;
  for (const stepper of all("[data-stepper]", form2)) steps(stepper);
  for (const list of all("[data-list]", form2)) options(list);
  for (const input of all("[data-grows]", form2)) growing(input, () => {
  });
  for (const zone of all("[data-zone]", form2)) {
    if (!zone.value) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  }
  const live = form2.dataset.live && all("[data-field]", form2).length ? checks(form2) : null;
  keys(form2);
  visit(form2);
  let sent = false;
  form2.addEventListener("submit", (event) => {
    if (sent) return event.preventDefault();
    const half = all("[data-field]", form2).filter(unfinished);
    if (half.length && !event.submitter?.formNoValidate) {
      event.preventDefault();
      for (const field of half) mark(field, unfinished(field));
      return half[0].querySelector("input").focus();
    }
    sent = true;
    live?.stop();
  });
  addEventListener("pageshow", () => {
    sent = false;
  });
}
function checks(form2) {
  const kept = form2.querySelector("[data-kept]");
  const touched = new Set(all(".field.wrong", form2).map((field) => field.dataset.field));
  let timer = 0;
  let dirty = false;
  let stopped = false;
  let turn = 0;
  const body = () => new URLSearchParams(new FormData(form2));
  const send = async () => {
    clearTimeout(timer);
    if (stopped || closed()) return;
    dirty = false;
    const mine = ++turn;
    try {
      const reply = await fetch(form2.dataset.live, { method: "POST", body: body(), redirect: "error" });
      if (!reply.ok) {
        kept.textContent = reply.status === 413 ? "Too long to keep" : "";
        return;
      }
      const { wrong } = await reply.json();
      if (mine !== turn || stopped) return;
      for (const field of all("[data-field]", form2)) {
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
  form2.addEventListener("input", (event) => {
    if (event.target.type === "search") return;
    form2.dataset.typed = "";
    later();
  });
  form2.addEventListener("focusout", (event) => {
    const field = event.target.closest("[data-field]");
    if (!field || field.contains(event.relatedTarget) || event.target.type === "search") return;
    if (!("typed" in form2.dataset)) return;
    touched.add(field.dataset.field);
    later();
  });
  form2.addEventListener("change", (event) => {
    const field = event.target.closest("[data-field]");
    if (field && ["radio", "checkbox"].includes(event.target.type)) touched.add(field.dataset.field);
  });
  document.addEventListener("closing", () => {
    if (dirty) send();
  });
  addEventListener("pagehide", () => {
    if (dirty && !stopped && !closed()) fetch(form2.dataset.live, { method: "POST", body: body(), keepalive: true }).catch(() => {
    });
  });
  return { stop: () => {
    stopped = true;
    clearTimeout(timer);
  } };
}
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
function settle(key, right) {
  const summary = document.getElementById("problems");
  if (!summary) return;
  for (const line of all("[data-problem]", summary)) if (line.dataset.problem === key) line.hidden = right;
  const left = all("[data-problem]:not([hidden])", summary).length;
  summary.hidden = left === 0;
  summary.querySelector("[data-problems]").textContent = left === 1 ? "One answer needs another look" : `${left} answers need another look`;
}
function keys(form2) {
  let typed = false;
  form2.addEventListener("input", (event) => {
    if (event.target.type !== "search") typed = true;
  });
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.repeat) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      const open = form2.querySelector("[data-open]");
      const go = form2.querySelector("[data-answers]");
      if (open) open.click();
      else if (go && !go.disabled) form2.requestSubmit(go);
    }
    if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
    const cancel = form2.querySelector("[data-act=cancel]");
    if (!cancel) return;
    event.preventDefault();
    ask(document.getElementById("leave-cancel"));
  });
  const hasTyped = () => typed || "typed" in form2.dataset;
  const ask = (sure) => {
    for (const dropped of all("[data-dropped]", sure)) dropped.hidden = !hasTyped();
    sure.showModal();
  };
  form2.addEventListener("click", (event) => {
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
      chosen.length ? `Chosen: ${names}${rest}` : ""
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
function visit(form2) {
  const open = form2.querySelector("[data-open]");
  const done = form2.querySelector("[data-done]");
  open?.addEventListener("click", () => setTimeout(() => form2.requestSubmit(done)));
}
function queue(search2) {
  const find = search2.querySelector("input");
  const rows = () => all(".rowlink");
  const filter = () => {
    for (const view of all(".views a")) {
      const address = new URL(view.href);
      if (find.value) address.searchParams.set("find", find.value);
      else address.searchParams.delete("find");
      view.href = address;
    }
    const words2 = fold(find.value).split(/\s+/);
    for (const row of rows()) {
      const text = fold([row.textContent, ...Object.values(row.parentElement.dataset)].join(" "));
      row.parentElement.hidden = !words2.every((word) => text.includes(word));
    }
    const found = rows().filter((row) => !row.parentElement.hidden).length;
    for (const list of all("[data-queue] .rows")) {
      list.hidden = all("[data-row]", list).every((row) => row.hidden);
      document.getElementById(list.getAttribute("aria-labelledby")).hidden = list.hidden;
    }
    const isEmpty = Boolean(find.value.trim()) && found === 0;
    for (const none of all("[data-none]")) none.hidden = !isEmpty;
    for (const idle of all("[data-idle]")) idle.hidden = isEmpty;
    const news = document.querySelector("[data-news]");
    const said = !find.value.trim() ? news.dataset.waiting : found === 0 ? "Nothing matches" : found === 1 ? "One question matches" : `${found} questions match`;
    if (news.textContent !== said) news.textContent = said;
  };
  let timer = 0;
  find.addEventListener("input", () => {
    filter();
    clearTimeout(timer);
    if ("more" in search2.dataset) timer = setTimeout(renewQueue, 300);
  });
  search2.addEventListener("submit", (event) => {
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
    const next = shown[at < 0 ? by > 0 ? 0 : -1 : at + by];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
  document.addEventListener("queue", filter);
}
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
      source.addEventListener("open", () => {
        seen = null;
      });
      source.addEventListener("change", news);
      source.addEventListener("error", reach);
    }
  };
  document.addEventListener("visibilitychange", update);
  addEventListener("pagehide", () => {
    source?.close();
    source = null;
  });
  addEventListener("pageshow", update);
  update();
}
var unreached = 0;
async function reach() {
  const reply = await fetch(form?.dataset.state ?? `${base}/state`).catch(() => null);
  unreached = reply ? 0 : unreached + 1;
  const said = unreached > 1 && (form || search) ? "The program that asks has ended, or cannot be reached. Nothing that you do on this page arrives." : "";
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
  for (const control of form?.elements ?? []) {
    if (control.type === "submit") control.disabled = Boolean(said) || closed() && "answers" in control.dataset;
  }
}
async function renewQueue() {
  const old = document.querySelector("[data-queue]");
  const search2 = document.querySelector("[data-search]");
  const address = new URL(location.href);
  if ("more" in search2.dataset) address.searchParams.set("find", search2.querySelector("input").value);
  const reply = await fetch(address).catch(() => null);
  if (!reply?.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = page.querySelector("[data-queue]");
  if (!fresh) return;
  const known = new Set(all("[data-row]", old).map((row) => row.dataset.row));
  for (const row of all("[data-row]", fresh)) if (!known.has(row.dataset.row)) row.classList.add("new");
  const focused = document.activeElement?.closest?.("[data-row]")?.dataset.row;
  for (const clock of all("[data-left]", fresh)) clock.dataset.end = String(Date.now() + Number(clock.dataset.left));
  const news = old.querySelector("[data-news]");
  const said = fresh.querySelector("[data-news]");
  news.dataset.waiting = said.dataset.waiting;
  said.replaceWith(news);
  old.replaceChildren(...fresh.childNodes);
  search2.hidden = page.querySelector("[data-search]")?.hidden ?? search2.hidden;
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
  if (form && open === false) location.replace(form.dataset.question);
  else await renewTeam();
  if (pending > 0 && document.querySelector("[data-close]")) await renewNotice();
}
function closing() {
  const early = document.querySelector("[data-early]");
  if (!early) return;
  early.querySelector("[data-go]").hidden = true;
  setTimeout(mayClose, 5e3);
}
function mayClose() {
  for (const again of all("[data-again]")) again.hidden = true;
  for (const go of all("[data-go]")) go.hidden = false;
}
async function renewNotice() {
  const reply = await fetch(location.href).catch(() => null);
  if (!reply?.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = page.querySelector("[data-notice]");
  if (!fresh || fresh.querySelector("[data-close]")) return;
  document.querySelector("[data-notice]").replaceWith(fresh);
}
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
  const kept = wasInside && all("button, summary, a", fresh).find((one) => one.outerHTML === focused.outerHTML);
  const digest = old.querySelector("[name=digest]")?.value;
  const known = new Set(all("[data-event]", old).map((line) => line.dataset.event));
  const opened = old.querySelector("details.course")?.open;
  const written = old.querySelector(".reason [name=comment]");
  if (fresh.innerHTML !== old.innerHTML) old.replaceChildren(...fresh.childNodes);
  const comment = written?.value && old.querySelector(".reason [name=comment]");
  if (comment) {
    comment.value = written.value;
    comment.closest("details").open = true;
  }
  const course = old.querySelector("details.course");
  if (course && opened) course.open = true;
  const confirm = old.querySelector("[name=digest]");
  if (confirm && confirm.value !== digest) confirmsFrom = Date.now() + 1e3;
  const early = confirmsFrom - Date.now();
  if (confirm && early > 0) {
    confirm.disabled = true;
    setTimeout(() => {
      confirm.disabled = false;
    }, early);
  }
  const wasClosed = closed();
  renewForm(page);
  const news = all("[data-event]", old).filter((line) => !known.has(line.dataset.event)).map((line) => line.querySelector("[data-text]").textContent);
  if (news.length) told.textContent = `${news.join(". ")}.`;
  if (kept) kept.focus();
  else if (comment && focused === written) comment.focus();
  else if (wasInside || !wasClosed && closed() && document.activeElement === document.body) told.focus();
}
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
    if (!go) return location.reload();
    form.querySelector("[data-answering]")?.toggleAttribute("disabled", is);
    go.disabled = is;
  }
  const other = page.querySelector("[data-answers]");
  if (go && go.dataset.act === (other?.dataset.act ?? "accept") && form.querySelector("[data-answering]")) {
    go.classList.toggle("main", Boolean(other?.classList.contains("main")));
    go.hidden = !other;
  }
  if (!document.querySelector(".reviewing, #leaving")) form.hidden = page.getElementById("answer")?.hidden ?? form.hidden;
}
function claimEnds() {
  clearTimeout(claimTimer);
  const claim = form?.querySelector("[data-claim]");
  if (claim) claimTimer = setTimeout(renewTeam, Math.min(Number(claim.dataset.claim) + 500, 2 ** 31 - 1));
}
function watch(place) {
  const [button, told] = place.children;
  const key = `mcp-elicit notify ${base}`;
  const chosen = (value) => {
    try {
      if (value === void 0) return localStorage.getItem(key) === "yes";
      if (value) localStorage.setItem(key, "yes");
      else localStorage.removeItem(key);
    } catch {
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
function notify(body) {
  if (!watching || !document.hidden) return;
  try {
    const shown = new Notification("Inbox", { body, tag: `mcp-elicit ${base}`, icon: `${base}/assets/icon-192.png` });
    shown.addEventListener("click", () => {
      window.focus();
      shown.close();
    });
  } catch {
  }
}
function badge(count) {
  if (count === void 0 || count === null || !document.querySelector("link[rel=manifest]")) return;
  navigator.setAppBadge?.(Number(count) || 0).catch(() => {
  });
}
async function notifications(section) {
  const told = section.querySelector("[data-push-told]");
  const button = section.querySelector("[data-notify]");
  const say = (text) => {
    told.textContent = text;
  };
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
      await (await ready.pushManager.getSubscription())?.unsubscribe();
      const made = await ready.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey }).catch(() => {
        throw "The browser's push service cannot be reached.";
      });
      const { endpoint, keys: keys2 } = made.toJSON();
      const reply = await fetch(`${base}/account/devices`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ csrf: section.dataset.csrf, endpoint, keys: keys2 }),
        redirect: "error"
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
  section.querySelector("[data-own-device]")?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { currentTarget: form2, submitter } = event;
    const known = await worker.pushManager.getSubscription().catch(() => null);
    await known?.unsubscribe().catch(() => {
    });
    sendOnce(form2, submitter);
  });
}
function sendOnce(form2, button) {
  const value = document.createElement("input");
  Object.assign(value, { type: "hidden", name: button.name, value: button.value });
  form2.append(value);
  form2.submit();
}
