// Makes the pages live: what the server renders is fetched again in part and put in place, keyed by entry. Nothing of
// an event is ever made into HTML here; text that streams goes into text nodes.
"use strict";
(() => {
  const root = document.documentElement;
  const store = { get: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
    set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* private window */ } } };
  if (store.get("theme")) root.dataset.theme = store.get("theme");

  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // ---- time: the reader's own clock, and how long ago
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  function ago(milliseconds) {
    const seconds = Math.round(milliseconds / 1000);
    if (seconds < 10) return "now";
    if (seconds < 60) return seconds + " s ago";
    if (seconds < 3600) return Math.floor(seconds / 60) + " min ago";
    if (seconds < 86400) return Math.floor(seconds / 3600) + " h ago";
    return null;
  }
  function tellTimes(within) {
    for (const time of all("time", within)) {
      const at = new Date(time.dateTime);
      if (isNaN(at)) continue;
      time.title = full.format(at);
      time.textContent = time.className === "clock" ? clock.format(at) : ago(Date.now() - at) || full.format(at);
    }
  }

  // ---- parts of pages
  const ROOT = document.documentElement.dataset.root || "";  // the path below which a proxy serves us
  async function part(address) {
    const target = new URL(address, location.href);
    target.searchParams.set("part", "1");
    target.hash = "";
    const answer = await fetch(target, { headers: { Accept: "text/html" } });
    if (answer.redirected && new URL(answer.url).pathname === ROOT + "/enter") location.href = ROOT + "/enter";
    if (!answer.ok) throw Object.assign(new Error("answer " + answer.status), { gone: answer.status === 404 || answer.status === 410 });
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    tellTimes(parsed);
    return parsed;
  }
  // Puts fresh items in the place of old ones where they differ, so that focus, selection and what is unfolded stay.
  // Returns the old items that are not among the fresh ones.
  function patch(list, old, fresh, key) {
    const known = new Map(old.map((item) => [item.getAttribute(key), item])), kept = new Set();
    let before = old.length ? old[0].previousElementSibling : list.lastElementChild;
    for (const item of fresh) {
      const present = known.get(item.getAttribute(key));
      known.delete(item.getAttribute(key));
      kept.add(present);
      let placed = present;
      if (!present || !same(present, item)) {
        placed = document.adoptNode(item);
        placed.classList.add("fresh");
        if (present) succeed(present, placed);
      }
      const next = before ? before.nextElementSibling : list.firstElementChild;
      if (placed !== next) list.insertBefore(placed, next);
      before = placed;
    }
    return old.filter((item) => !kept.has(item));
  }
  function succeed(old, fresh) {
    const folds = all("details", fresh), falls = one(".waterfall", old), held = document.activeElement;
    all("details", old).forEach((details, number) => { if (folds[number]) folds[number].open = details.open; });
    if (falls) fresh.append(falls);
    if (old.classList.contains("here")) fresh.classList.add("here");
    swap(old, fresh, held === old);
  }
  // Puts an element in another one's place: what had the focus there has it here, and what was scrolled still is.
  function swap(old, fresh, focused) {
    const likes = (item) => (found) => found.localName === item.localName && found.className === item.className;
    const held = old.contains(document.activeElement) && old !== document.activeElement && document.activeElement;
    const link = held && held.getAttribute("href"), twins = held ? all(held.localName, old).filter(likes(held)) : [];
    const scrolled = all("[tabindex]", old).map((box) => [box.scrollLeft, box.scrollTop]);
    old.replaceWith(fresh);
    all("[tabindex]", fresh).forEach((box, number) => { if (scrolled[number]) [box.scrollLeft, box.scrollTop] = scrolled[number]; });
    if (!held) { if (focused) fresh.focus({ preventScroll: true }); return; }
    const twin = all(held.localName, fresh).filter(likes(held))[twins.indexOf(held)];
    ((link && all("a", fresh).find((found) => found.getAttribute("href") === link)) || twin || one("a, summary", fresh) || fresh).focus({ preventScroll: true });
  }
  function same(old, fresh) {
    if (old.dataset.v !== undefined) return old.dataset.v === fresh.dataset.v;
    const plain = (item) => { const copy = item.cloneNode(true); copy.classList.remove("fresh"); all("time", copy).forEach((time) => time.replaceChildren()); return copy; };
    const a = plain(old), b = plain(fresh);
    if (!a.className) a.removeAttribute("class");
    return a.isEqualNode(b);
  }

  // ---- the live stream: closed while nobody looks, because a browser has few connections for one host
  const light = () => one(".live");
  function say(text, on) {
    const shown = light();
    if (!shown) return;
    if (shown.textContent !== text) shown.textContent = text;
    shown.classList.toggle("on", on);
    shown.classList.toggle("off", !on);
  }
  const NOTE_MS = 4000;
  function note(text) {
    const before = light()?.textContent;
    say(text, true);
    setTimeout(() => { if (light()?.textContent === text) say(before, before === "live"); }, NOTE_MS);
  }
  const RECONNECT_MS = 3000;
  function follow(session, take, again) {
    let stream = null;
    const open = () => {
      if (stream || document.hidden) return;
      stream = new EventSource(ROOT + "/api/v1/stream" + (session ? "?session=" + encodeURIComponent(session) : ""));
      stream.onopen = () => { say("live", true); again(); };
      stream.onerror = () => {
        say("connecting…", false);
        // A browser connects again by itself, but not after an answer that is no stream.
        if (stream?.readyState === EventSource.CLOSED) { stream = null; again(); setTimeout(open, RECONNECT_MS); }
      };
      for (const name of ["events", "session", "exporter", "dropped"]) {
        stream.addEventListener(name, (message) => { let data = {}; try { data = JSON.parse(message.data); } catch { return; } take(name, data); });
      }
    };
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) return open();
      if (stream) { stream.close(); stream = null; say("paused", false); }
    });
    addEventListener("pagehide", () => { if (stream) { stream.close(); stream = null; } });
    addEventListener("pageshow", (shown) => { if (shown.persisted) open(); });
    open();
  }
  // Runs a job at most once at a time and never more often than `pause`; what is asked for meanwhile runs once more.
  function once(job, pause) {
    let running = false, wanted = false;
    return async function run() {
      wanted = true;
      if (running) return;
      running = true;
      while (wanted) {
        wanted = false;
        try { await job(); } catch (error) { if (error.gone) { say("no longer available", false); break; } say("retrying…", false); await new Promise((done) => setTimeout(done, 1000)); if (root.dataset.left !== "1") wanted = true; }
        await new Promise((done) => setTimeout(done, pause));
      }
      running = false;
    };
  }
  addEventListener("pagehide", () => { root.dataset.left = "1"; });
  addEventListener("pageshow", () => { delete root.dataset.left; });

  // ---- the title of the tab says that somebody is waited for
  const name = document.title;
  function callAttention() {
    const count = one(".filters a.needs_attention b")?.textContent, waits = count ? count !== "0" : one(".head .state.needs_attention");
    const title = (waits ? "(" + (count || "!") + ") " : "") + name;
    if (document.title !== title) document.title = title;
  }

  // ---- lists: sessions, feed, health
  function live() {
    let turn = 0;
    async function refresh() {
      const mine = ++turn, asked = location.href;
      const fresh = one("[data-part=list]", await part(asked));
      if (mine === turn && asked === location.href && fresh) { renew(one("[data-part=list]"), fresh); callAttention(); }
    }
    const nameOf = (child) => [child.localName, child.classList[0], child.getAttribute("aria-label"), one("h2", child)?.firstChild.textContent].join(" ");
    const rowsOf = (child) => one("[data-key]", child)?.parentElement;
    function renew(list, fresh) {
      const known = new Map([...list.children].map((child) => [nameOf(child), child])), kept = new Set();
      let before = null;
      for (const child of [...fresh.children]) {
        const present = known.get(nameOf(child)), rows = present && rowsOf(present), others = rowsOf(child);
        known.delete(nameOf(child));
        let placed = present || child;
        if (rows && others) for (const gone of patch(rows, [...rows.children], [...others.children], "data-key")) gone.remove();
        else if (present && !same(present, child)) { swap(present, child); placed = child; }
        const next = before ? before.nextElementSibling : list.firstElementChild;
        if (placed !== next) list.insertBefore(placed, next);
        kept.add(placed);
        before = placed;
      }
      for (const child of [...list.children]) if (!kept.has(child)) child.remove();
    }
    const run = once(refresh, 150);
    const field = one(".search input[type=search]");
    if (field) {
      field.addEventListener("input", () => {
        const address = new URL(location.href);
        address.searchParams.delete("cursor");
        if (field.value) address.searchParams.set("q", field.value); else address.searchParams.delete("q");
        history.replaceState(null, "", address);
        run();
      });
      field.form.addEventListener("submit", (event) => { event.preventDefault(); run(); });
    }
    follow(null, run, run);
    setInterval(() => tellTimes(document), 10000);
  }

  // ---- one session
  const PARTS_MAX = 1600;
  function session(id) {
    const line = () => one("ol.timeline");
    const entries = () => all(".entry[id]", line());
    const entryOf = (hash) => (hash.startsWith("#e-") && document.getElementById(hash.slice(1))?.closest(".entry[id]")) || null;
    const idOf = (entry) => decodeURIComponent(entry.id.slice(2));
    const isPlace = (entry) => Boolean(entry) && !entry.id.startsWith("e-rewind-");
    const PLACES = ["at", "from", "before", "after", "edge", "side", "few", "q"];
    const address = (name, value) => {
      const to = new URL(location.href);
      for (const place of PLACES) to.searchParams.delete(place);
      if (line().dataset.all) to.searchParams.set("all", "1");
      if (name) to.searchParams.set(name, value);
      to.hash = "";
      return to;
    };
    const atEnd = () => !one(".more.later");
    const nearBottom = () => innerHeight + scrollY > document.body.scrollHeight - 160;

    // ---- following: what is new comes behind the last entries, and calls further up get their ends
    function place(parsed, from) {
      const fresh = one("ol.timeline", parsed), list = line();
      if (one(".empty", fresh)) return;
      const stick = nearBottom() && scrollY > 0, old = entries();
      const start = from ? old.findIndex((entry) => idOf(entry) === from) : 0;
      if (start < 0) return;
      // The end of a call that stands above is shown there, or will be in a moment.
      const above = new Set(), waiting = new Map();
      one(".empty", list)?.remove();
      for (const entry of old.slice(0, start)) {
        for (const raw of all(".raw[id]", entry)) above.add(raw.id);
        if (entry.matches(".running") && entry.dataset.call) waiting.set(entry.dataset.call, entry);
      }
      const items = [...fresh.children].filter((item) => {
        const call = waiting.get(item.dataset.call);
        if (call) due.add(call.id);
        return !call && !above.has(item.id);
      });
      const gone = patch(list, old.slice(start), items, "id");
      if (!one(".more.later", parsed)) for (const entry of gone) entry.remove();
      settleTyping();
      if (stick) { trim("earlier"); scrollTo(0, document.body.scrollHeight); }
      draw();
    }
    // Shows another window in the place of what is here.
    function replaceAll(parsed) {
      const stick = atEnd() && nearBottom() && scrollY > 0, fresh = one("ol.timeline", parsed);
      for (const mark of all(".more.earlier, .more.later, #newest")) mark.remove();
      line().replaceChildren();
      if (one(".empty", fresh)) line().append(...fresh.children); else place(parsed, null);
      line().before(...all(".more.earlier", parsed));
      line().after(...all(".more.later, #newest", parsed));
      if (stick) scrollTo(0, document.body.scrollHeight);
    }
    const WINDOWS_MAX = 4, BACK = [6, 50, 400, Infinity];
    const due = new Set();
    async function refresh() {
      if (!atEnd()) { side(); return; }
      await finish();
      for (const back of BACK) {
        const shown = entries(), from = shown.slice(Math.max(0, shown.length - back)).find(isPlace);
        if (from && await goOn(from)) { await finish(); fall(); side(); return; }
      }
      replaceAll(await part(address()));
      side();
    }
    // Places what stands from an entry on to the end; false when it has been taken back.
    async function goOn(from) {
      for (let windows = 0; windows < WINDOWS_MAX; windows++) {
        const told = await part(address("from", idOf(from)));
        if (one("[data-part=gone]", told)) return false;
        const before = entries().at(-1);
        place(told, idOf(from));
        if (!one(".more.later", told)) return true;
        from = entries().filter(isPlace).at(-1);
        if (from === before) break;
      }
      replaceAll(await part(address()));
      return true;
    }
    async function finish() {
      if (!due.size) return;
      for (const id of due) {
        due.delete(id);
        const entry = document.getElementById(id);
        if (!entry || entry.closest("ol.timeline") !== line()) continue;
        const asked = address("from", idOf(entry));
        if (!entry.matches(".turn")) asked.searchParams.set("few", "1");
        const told = one("ol.timeline > .entry", await part(asked));
        if (told && told.id === id) patch(line(), [entry], [told], "id");
      }
      tidy();
      draw();
    }
    // What is part of an entry now is no entry of its own any more.
    function tidy() {
      const parts = new Set(all(".raw[id]", line()).map((raw) => raw.id));
      for (const entry of entries()) if (parts.has(entry.id)) entry.remove();
    }
    const run = once(refresh, 40);
    const side = once(async () => {
      const fresh = await part(address("side", "1"));
      for (const name of ["head", "side"]) {
        const old = one("[data-part=" + name + "]"), next = one("[data-part=" + name + "]", fresh);
        if (old && next && !old.isEqualNode(next) && !old.contains(document.activeElement)) old.replaceWith(next);
      }
      callAttention();
    }, 900);
    function catchUp() { for (const entry of entries()) if (entry.matches(".running")) due.add(entry.id); run(); }

    // The day stands above the first entry of it, by the reader's own clock.
    const weekday = new Intl.DateTimeFormat(undefined, { weekday: "long", year: "numeric", month: "long", day: "numeric" });
    function tellDays() {
      let above = "";
      for (const entry of entries()) {
        const at = new Date(one(".at time", entry)?.dateTime), heading = one(".day", entry);
        if (isNaN(at)) continue;
        const day = weekday.format(at);
        if (day === above) heading?.remove();
        else if (!heading) entry.prepend(make("h2", "day", day));
        else if (heading.textContent !== day) heading.textContent = day;
        above = day;
      }
    }
    function draw() { tellDays(); drawBars(); }
    // ---- bars: when something was and how long it took, on the axis of its interaction's waterfall
    function drawBars() {
      let bars = [], from = Infinity, to = -Infinity, falls = null;
      const finished = () => {
        const start = falls ? Number(falls.dataset.from) : from, length = (falls ? Number(falls.dataset.to) : to) - start;
        for (const [bar, at, took] of bars) {
          const left = length > 0 ? Math.min(100, Math.max(0, (at - start) / length * 100)) : 0;
          const width = Math.min(100 - left, Math.max(0.4, length > 0 ? took / length * 100 : 0)), rect = bar.firstElementChild;
          if (rect.getAttribute("x") !== left.toFixed(2)) rect.setAttribute("x", left.toFixed(2));
          if (rect.getAttribute("width") !== width.toFixed(2)) rect.setAttribute("width", width.toFixed(2));
        }
        bars = []; from = Infinity; to = -Infinity; falls = null;
      };
      for (const entry of entries()) {
        if (entry.matches(".user:not(.child)")) { finished(); falls = one(".waterfall[data-from]", entry); }
        if (!entry.matches(".user, .assistant, .tool, .turn")) continue;
        const at = Date.parse(one(".at time", entry)?.dateTime), bar = one(".bar", entry), took = Number(bar?.dataset.took || 0);
        if (isNaN(at)) continue;
        from = Math.min(from, at);
        to = Math.max(to, at + took);
        if (bar) bars.push([bar, at, took]);
      }
      finished();
    }
    // The waterfall of what still goes on grows, as often as a tenth of the time that drawing it takes allows.
    const FALL_MS = 1500;
    const fall = once(async () => {
      const entry = all(".entry.user:not(.child)", line()).at(-1), open = entry && one(".waterfall", entry);
      if (!open) return;
      const began = performance.now(), fresh = one(".waterfall", await part(one(".spans", entry).href));
      if (open.isConnected && !open.isEqualNode(fresh)) { swap(open, document.adoptNode(fresh)); draw(); }
      await new Promise((done) => setTimeout(done, 10 * (performance.now() - began) - FALL_MS));
    }, FALL_MS);

    // ---- text that is being written, and output of commands that run
    const typing = new Map();
    const PIECES = new Map([["assistant.message_delta", ["messageId", "deltaContent"]], ["assistant.reasoning_delta", ["reasoningId", "deltaContent"]], ["assistant.tool_call_delta", ["toolCallId", "inputDelta"]]]);
    // What ends whatever its agent was writing, should the durable event of it never come.
    const ENDS = new Set(["abort", "assistant.turn_end", "session.error", "session.shutdown", "user.message"]);
    const TYPED_MAX = 100000, SETTLE_MS = 1500;
    const drop = (fits) => { for (const [key, shown] of typing) if (fits(key, shown)) { shown.remove(); typing.delete(key); } };
    function typed(event) {
      const data = event.data || {}, scope = new URL(location.href).searchParams, agent = String(event.agentId || "");
      if (typeof data !== "object" || !atEnd() || scope.get("agent") || (scope.get("main") && agent)) return;
      const [id, field] = PIECES.get(event.type) || [];
      if (id) { if (typeof data[field] === "string") write(event.type, String(data[id] || agent || "main"), agent, data, data[field]); return; }
      const calls = { "tool.execution_partial_result": data.partialOutput, "tool.shell_output": data.text, "tool.execution_progress": data.progressMessage };
      const words = Object.hasOwn(calls, event.type) && calls[event.type];
      const entry = typeof words === "string" && entries().find((one) => one.classList.contains("running") && (!data.toolCallId || one.dataset.call === String(data.toolCallId)));
      if (entry) event.type === "tool.execution_progress" ? progress(entry, words) : output(entry, words, event.type === "tool.execution_partial_result");
    }
    function write(type, key, agent, data, words) {
      let shown = typing.get(key);
      const stick = nearBottom();
      if (!shown) {
        if (type === "assistant.message_delta") drop((_, one) => one.dataset.agent === agent && one.matches(".thinking"));
        const titles = { "assistant.reasoning_delta": "Reasoning", "assistant.tool_call_delta": String(data.toolName || "tool") };
        shown = make("li", "entry typing " + (type === "assistant.tool_call_delta" ? "tool" : type === "assistant.reasoning_delta" ? "assistant thinking" : "assistant"));
        const what = make("div", "what"), who = make("div", "who"), said = make("div", "said");
        who.append(make("span", "title", Object.hasOwn(titles, type) ? titles[type] : agent ? "Sub-agent" : "Assistant"));
        said.append(make("p"));
        what.append(who, said);
        shown.append(make("span", "at", "now"), what);
        shown.setAttribute("aria-busy", "true");
        shown.dataset.agent = agent;
        typing.set(key, shown);
        line().append(shown);
      }
      const text = one("p", shown);
      if (text.textContent.length < TYPED_MAX) text.append(words);
      if (stick) scrollTo(0, document.body.scrollHeight);
    }
    // A partial result is all of the output so far; pieces of a shell's output say the same again, or come alone.
    function output(entry, words, isAll) {
      let shown = one(".stream", entry);
      if (!shown) { shown = make("pre", "stream"); shown.tabIndex = 0; one("details", entry)?.append(shown); }
      if (isAll) { shown.dataset.all = "1"; shown.textContent = words.slice(-TYPED_MAX); return; }
      if (shown.dataset.all) return;
      shown.append(words);
      while (shown.childNodes.length > 400) shown.firstChild.remove();
    }
    function progress(entry, words) {
      let shown = one(".progress", entry);
      if (!shown) { shown = make("span", "fact progress"); one("summary", entry)?.append(shown); }
      shown.textContent = words.slice(0, 200);
    }
    function settleTyping() {
      const calls = new Set(entries().map((entry) => entry.dataset.call));
      drop((key) => calls.has(key));
      for (const shown of typing.values()) line().append(shown);
    }
    function ended(event) {
      const agent = String(event?.agentId || ""), call = String(event?.data?.toolCallId);
      const is = { "tool.execution_complete": (entry) => entry.dataset.call === call, "assistant.turn_end": (entry) => entry.matches(".turn") && !one(".took", entry) };
      const further = Object.hasOwn(is, event?.type) && entries().slice(0, -BACK[0]).reverse().find(is[event.type]);
      if (further) due.add(further.id);
      if (event?.type === "assistant.message") drop((_, one) => one.dataset.agent === agent && one.matches(".thinking"));
      if (!ENDS.has(event?.type)) return;
      const written = [...typing.values()].filter((shown) => shown.dataset.agent === agent);
      setTimeout(() => drop((_, shown) => written.includes(shown)), SETTLE_MS);
    }

    follow(id, (name, data) => {
      if (name === "events") for (const event of data.events || []) if (event && typeof event === "object") (data.ephemeral ? typed : ended)(event);
      if (name === "events" && data.ephemeral) return;
      if (name === "session" && data.deleted) { say("this session was forgotten", false); return; }
      if (name === "dropped") catchUp(); else run();
    }, catchUp);
    setInterval(() => tellTimes(one("[data-part=head]")), 10000);

    // ---- scrolling: earlier and later windows come by themselves, and the far end goes
    const grow = once(async () => {
      for (const [kind, selector] of [["earlier", ".more.earlier"], ["later", ".more.later"]]) {
        const mark = one(selector);
        if (!mark) continue;
        const at = mark.getBoundingClientRect();
        if (at.bottom < -600 || at.top > innerHeight + 600) continue;
        const parsed = await part(one("a", mark).href), fresh = one("ol.timeline", parsed), list = line();
        const anchor = entries().find((entry) => entry.getBoundingClientRect().bottom > 0), top = anchor?.getBoundingClientRect().top;
        if (one("[data-part=gone]", parsed)) { replaceAll(await part(address())); return; }
        const items = [...fresh.children].map((item) => document.adoptNode(item));
        const next = one(selector, parsed);
        if (next) mark.replaceWith(document.adoptNode(next)); else mark.remove();
        if (kind === "earlier") list.prepend(...items); else list.append(...items);
        if (kind === "later" && !next) list.after(...all("#newest", parsed));
        tidy();
        trim(kind === "later" ? "earlier" : "later");
        draw();
        if (anchor && anchor.isConnected) scrollBy(0, anchor.getBoundingClientRect().top - top);
      }
    }, 60);
    // Lets the far end go when the page holds much, and offers to bring it back.
    function trim(end) {
      const shown = entries(), far = end === "earlier" ? shown.slice(0, -PARTS_MAX) : shown.slice(PARTS_MAX);
      if (!far.length) return;
      for (const entry of far) entry.remove();
      if (end === "later") one("#newest")?.remove();
      if (!one(".more." + end)) { if (end === "earlier") line().before(offer("earlier")); else line().after(offer("later")); }
      const left = entries().filter(isPlace);
      one(".more." + end + " a").href = end === "earlier" ? address("before", idOf(left[0])) : address("after", idOf(left.at(-1)));
    }
    function offer(end) {
      const made = make("p", "more " + end);
      made.append(make("a", "button", end === "earlier" ? "Earlier" : "Later"));
      return made;
    }
    for (const moved of ["scroll", "wheel"]) addEventListener(moved, () => { if (one(".more.earlier, .more.later")) grow(); }, { passive: true });

    // ---- keys and jumps
    const here = () => one(".entry.here", line());
    function go(entry, open) {
      here()?.classList.remove("here");
      entry.classList.add("here");
      if (open) all("details", entry).forEach((details) => { details.open = true; });
      entry.scrollIntoView({ block: "center" });
      entry.focus({ preventScroll: true });
      const to = new URL(location.href);
      to.hash = entry.id;
      history.replaceState(null, "", to);
    }
    function step(direction) {
      const shown = entries(), from = here();
      const at = from ? shown.indexOf(from) + direction : shown.findIndex((entry) => entry.getBoundingClientRect().top > 110);
      if (shown[at]) go(shown[at]);
    }
    function jump(kind, back) {
      const shown = entries(), from = here() || shown.at(back ? 0 : -1), start = shown.indexOf(here());
      const order = back ? shown.slice(0, Math.max(0, start)).reverse() : shown.slice(start + 1);
      const found = order.find((entry) => entry.matches("[data-stop~=" + kind + "]"));
      if (found) return go(found, kind === "error");
      const whole = atEnd() && !one(".more.earlier");
      const round = whole && (back ? [...shown].reverse() : shown).find((entry) => entry.matches("[data-stop~=" + kind + "]"));
      if (round) return go(round, kind === "error");
      if (whole) return note(kind === "error" ? "no errors" : "no notifications");
      const to = new URL(location.pathname + "/next", location.href);
      to.searchParams.set("kind", kind);
      if (back) to.searchParams.set("back", "1");
      if (isPlace(from)) to.searchParams.set("after", idOf(from));
      location.href = to;
    }
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      if (link.matches(".jump")) { event.preventDefault(); jump(link.dataset.kind, false); }
      else if (link.matches(".raw, .whole, .forget")) { event.preventDefault(); show(link.href); }
      else if (link.matches(".spans")) { event.preventDefault(); falls(link); }
      else {
        const entry = entryOf(link.hash);
        if (entry && link.pathname === location.pathname) { event.preventDefault(); go(entry, !link.matches(".at")); if (isPlace(entry)) keep(entry); }
      }
    });
    async function falls(link) {
      const entry = link.closest(".entry"), present = one(".waterfall", entry);
      if (present) { present.remove(); draw(); return; }
      if (link.dataset.busy) return;
      link.dataset.busy = "1";
      try { entry.append(document.adoptNode(one(".waterfall", await part(link.href)))); } finally { delete link.dataset.busy; }
      draw();
    }

    // ---- the reader's place: in the address when an entry was gone to, else remembered for a reload and the way back
    const keep = (entry) => { const to = address("at", idOf(entry)); to.hash = entry.id; history.replaceState(null, "", to); };
    const memory = () => "place " + location.pathname + location.search;
    addEventListener("pagehide", () => {
      const shown = (atEnd() && nearBottom()) || scrollY === 0 ? null : entries().filter(isPlace).find((entry) => entry.getBoundingClientRect().bottom > 0);
      try { sessionStorage.setItem(memory(), JSON.stringify(shown ? { id: shown.id, top: shown.getBoundingClientRect().top } : scrollY ? { end: true } : null)); } catch { /* none here */ }
    });
    function remembered() {
      if (performance.getEntriesByType("navigation")[0]?.type === "navigate") return null;
      try { return JSON.parse(sessionStorage.getItem(memory())); } catch { return null; }
    }
    history.scrollRestoration = "manual";
    async function restore() {
      const kept = remembered(), wanted = kept ? "#" + kept.id : location.hash;
      if (kept?.end) { scrollTo(0, document.body.scrollHeight); return; }
      if (!wanted.startsWith("#e-") || wanted.startsWith("#e-rewind-")) return;
      if (!entryOf(wanted)) {
        const told = await part(address("at", decodeURIComponent(wanted.slice(3))));
        if (one("ol.timeline", told)) replaceAll(told);
      }
      const entry = entryOf(wanted), marked = entryOf(location.hash);
      if (entry && !kept) go(entry, true);
      if (marked && kept) marked.classList.add("here");
      // What is out of sight has no exact height until it has been drawn.
      for (let frame = 0; entry && kept && frame < 5; frame++) {
        scrollBy(0, entry.getBoundingClientRect().top - kept.top);
        await new Promise((done) => requestAnimationFrame(done));
      }
    }
    restore().catch(() => {});
    addEventListener("hashchange", () => { const entry = entryOf(location.hash); if (entry) go(entry, true); });
    draw();
    const first = one(".spans");
    if (first && entries().length < 400) falls(first).catch(() => {});
    return { n: () => jump("note"), N: () => jump("note", true), e: () => jump("error"), E: () => jump("error", true),
      j: () => step(1), k: () => step(-1), o: () => { const at = here(), details = at && one("details", at); if (details) details.open = !details.open; },
      r: () => { const at = here(), raw = at && one(".raw", at); if (raw) show(raw.href); },
      w: () => { const at = here(), link = at ? all(".spans").filter((one) => one.compareDocumentPosition(at) & 4 || at.contains(one)).pop() : one(".spans"); if (link) falls(link); },
      End: () => { if (atEnd()) scrollTo(0, document.body.scrollHeight); else location.href = address() + "#newest"; } };
  }

  // ---- a window over the page: an event's JSON, or what the keys do
  function dialog(content) {
    const shown = make("dialog"), close = make("button", "button close", "Close");
    shown.setAttribute("aria-label", "Details");
    close.addEventListener("click", () => shown.close());
    shown.addEventListener("close", () => shown.remove());
    shown.addEventListener("click", (event) => { if (event.target === shown) shown.close(); });
    one(".keep", content)?.addEventListener("click", (event) => { event.preventDefault(); shown.close(); });
    shown.append(close, content);
    document.body.append(shown);
    shown.showModal();
  }
  let opening = "";
  async function show(address) {
    if (opening === address) return;
    opening = address;
    try { const shown = one("article", await part(address)); if (shown && !one("dialog[open]")) dialog(document.adoptNode(shown)); } finally { opening = ""; }
  }
  const HELP = { n: "next notification (N: previous)", e: "next error (E: previous)", j: "next entry", k: "previous entry", o: "fold or unfold", r: "JSON of the entry", w: "waterfall of the interaction", End: "newest", "/": "search", t: "light or dark", "1 2 3": "Sessions, Feed, Redaction & health", "?": "this help" };
  function help() {
    const content = make("div"), list = make("dl", "keys");
    content.append(make("h2", "", "Keys"), list);
    for (const [key, meaning] of Object.entries(HELP)) { const term = make("dt"); term.append(make("kbd", "", key)); list.append(term, make("dd", "", meaning)); }
    dialog(content);
  }
  function theme() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    store.set("theme", root.dataset.theme);
  }

  document.addEventListener("DOMContentLoaded", () => {
    tellTimes(document);
    callAttention();
    const top = one(".top"), buttons = [["◐", "Light or dark", theme], ["?", "Keys", help]];
    for (const [text, name, act] of buttons) { const button = make("button", "icon-button", text); button.type = "button"; button.setAttribute("aria-label", name); button.title = name; button.addEventListener("click", act); top.append(button); }
    const keys = { t: theme, "?": help, "/": () => one("input[type=search]")?.focus() };
    all(".top nav a").forEach((link, number) => { keys[number + 1] = () => { location.href = link.href; }; });
    if (document.body.dataset.session) Object.assign(keys, session(document.body.dataset.session));
    else if (document.body.dataset.live) live();
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
      if (event.target.matches("input, textarea, select")) {
        if (event.key !== "Escape") return;
        if (event.target.type === "search" && event.target.value) { event.target.value = ""; event.target.dispatchEvent(new Event("input")); }
        event.target.blur();
        return;
      }
      const act = Object.hasOwn(keys, event.key) && keys[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  });
})();
