// What the page does by itself: keeps up with the service, tells how long ago things were, and carries out what a person confirms.
"use strict";
(() => {
  const KEY = "roost-token";
  const by = (id) => document.getElementById(id);
  const token = () => sessionStorage.getItem(KEY);
  const headers = (more) => {
    const all = new Headers(more);
    if (token()) all.set("Authorization", "Bearer " + token());
    return all;
  };
  let now = 0, stream = null;

  // Time is the service's, which need not run as ours does.
  const words = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
    if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
    return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
  };
  const tick = () => {
    for (const el of document.querySelectorAll("time[data-ago]")) {
      const text = words(now - Date.parse(el.dateTime));
      if (el.textContent !== text) el.textContent = text;
    }
  };

  // The service's time by UTC, and beside it by the clock of whoever looks.
  const zone = new Date().getTimezoneOffset() === 0;
  const local = (at) => new Date(at).toLocaleTimeString([], { hour12: false });
  const showClock = () => {
    if (by("clock")) by("clock").textContent = new Date(now).toISOString().slice(11, 19);
    if (by("local") && !zone) by("local").textContent = local(now) + " here";
  };
  document.addEventListener("mouseover", (event) => {
    const el = event.target.closest("time[datetime]");
    if (!el || zone || el.title.includes(" here")) return;
    el.title += ", " + new Date(el.dateTime).toLocaleString([], { hour12: false }) + " here";
  });

  const say = (text, bad) => {
    const el = by("said");
    el.textContent = text;
    el.className = bad ? "bad" : "good";
    el.hidden = false;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => { el.hidden = true; }, 8000);
  };

  // What was sent, from which the next changes start.
  let known = { set: new Map(), tables: new Map() };
  const edited = (old, change) => {
    if (typeof change === "string") return change;
    let text = "", at = 0;
    for (const [from, drop, instead] of change) {
      text += old.slice(at, from) + instead;
      at = from + drop;
    }
    return text + old.slice(at);
  };
  const reordered = (old, changes) => {
    const keys = [];
    let at = 0;
    for (const [from, drop, instead] of changes) {
      keys.push(...old.slice(at, from), ...instead);
      at = from + drop;
    }
    return keys.concat(old.slice(at));
  };

  // Only what reads differently is touched: what has the keyboard keeps it, what is open stays open, what is selected stays so.
  const keyOf = (node) => node.nodeName + (node.nodeType === 1
    ? (node.getAttribute("href") || node.dataset?.post || node.firstElementChild?.getAttribute("href") || "") : "");
  const become = (old, now) => {
    if (old.nodeType !== 1) {
      if (old.data !== now.data) old.data = now.data;
      return;
    }
    const sameTime = old.matches("time[data-ago]") && old.getAttribute("datetime") === now.getAttribute("datetime");
    for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (!sameTime) morph(old, now);
  };
  const morph = (old, now) => {
    let at = old.firstChild;
    for (const next of [...now.childNodes]) {
      const key = keyOf(next);
      let same = at;
      // Words between elements are no reason to pass one by.
      while (same && keyOf(same) !== key) same = next.nodeType === 1 ? same.nextSibling : null;
      if (!same) { old.insertBefore(next, at); continue; }
      while (at !== same) { const gone = at; at = at.nextSibling; gone.remove(); }
      become(at, next);
      at = at.nextSibling;
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  };
  const showIn = (el, html) => {
    const now = el.cloneNode(false);
    now.innerHTML = html;
    morph(el, now);
  };

  // What is moved loses the keyboard, and gets it back.
  const marked = (el) => el && el.closest("main") &&
    (el.dataset.post || (el.getAttribute("href") && "h" + el.getAttribute("href")));
  const patch = (news) => {
    now = news.now;
    showClock();
    const waits = news.waiting > 0 ? "(" + news.waiting + ") " : "";
    document.title = waits + document.body.dataset.title;
    const focus = marked(document.activeElement);
    for (const [id, change] of Object.entries(news.set || {})) {
      const html = edited(known.set.get(id) || "", change), el = by("b-" + id);
      known.set.set(id, html);
      if (!el) continue;
      showIn(el, html);
      el.hidden = !html;
    }
    for (const [id, change] of Object.entries(news.tables || {})) {
      const was = known.tables.get(id) || { order: [], rows: new Map() };
      known.tables.set(id, was);
      const el = by("b-" + id), body = el && el.querySelector("tbody");
      if (!body) continue;
      const rows = new Map([...body.rows].map((row) => { row.className = ""; return [row.dataset.key, row]; }));
      for (const [key, text] of Object.entries(change.rows || {})) {
        const html = edited(was.rows.get(key) || "", text);
        was.rows.set(key, html);
        let row = rows.get(key);
        if (row) { showIn(row, html); continue; }
        row = document.createElement("tr");
        row.dataset.key = key;
        row.className = "new";
        row.innerHTML = html;
        rows.set(key, row);
      }
      if (change.order) {
        was.order = reordered(was.order, change.order);
        const stay = new Set(was.order);
        for (const [key, row] of rows) if (!stay.has(key)) { row.remove(); was.rows.delete(key); }
        was.order.forEach((key, index) => {
          const row = rows.get(key);
          if (row && body.rows[index] !== row) body.insertBefore(row, body.rows[index] || null);
        });
      }
      if (change.below !== undefined) showIn(el.querySelector(".below"), change.below);
    }
    if (focus && !marked(document.activeElement)) {
      for (const el of document.querySelectorAll("main a[href], main [data-post]")) {
        if (marked(el) === focus) { el.focus({ preventScroll: true }); break; }
      }
    }
    tick();
  };

  const state = (text, mood) => {
    const el = by("live");
    // Said once: a reader would say it again at every change.
    if (el && el.textContent !== text) { el.textContent = text; el.className = "chip " + mood; }
  };

  // What is shown is of then: it must not look as if it were of now.
  const lost = (pause) => {
    document.body.classList.add("lost");
    const el = by("lost");
    if (!el) return;
    lost.since = lost.since || now;
    el.textContent = "No connection to the service since " + new Date(lost.since).toISOString().slice(11, 19) +
      " UTC. What is shown below is from then; what the service does meanwhile is not known. Next try in " + Math.ceil(pause / 1000) + " s.";
    el.hidden = false;
  };
  const found = () => {
    if (!document.body.classList.contains("lost")) return;
    document.body.classList.remove("lost");
    lost.since = null;
    by("lost").hidden = true;
  };

  // Not an EventSource: it cannot show a token.
  const follow = async () => {
    if (stream) stream.abort();
    if (!by("live")) return;
    const mine = stream = new AbortController();
    let pause = 500;
    while (!mine.signal.aborted) {
      try {
        const answer = await fetch("/live" + location.pathname + location.search,
          { headers: headers(), signal: mine.signal, cache: "no-store" });
        if (answer.status === 404) { state("gone", "quiet"); return; }
        if (!answer.ok) throw new Error(String(answer.status));
        known = { set: new Map(), tables: new Map() };
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          text += value;
          const parts = text.split("\n\n");
          text = parts.pop();
          for (const part of parts) {
            const data = part.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
            if (data) { patch(JSON.parse(data)); state("live", "good"); found(); pause = 500; }
          }
        }
      } catch (error) {
        if (mine.signal.aborted) return;
      }
      if (mine.signal.aborted) return;
      state("lost, trying again", "bad");
      lost(pause);
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, 10000);
    }
  };

  // With a token, pages are fetched with it: a link alone cannot show one.
  const here = () => location.pathname + location.search;
  /** The page that is shown. */
  let at = here();
  const show = async (url, push) => {
    const answer = await fetch(url, { headers: headers({ Accept: "text/html" }), cache: "no-store" });
    if (!(answer.headers.get("content-type") || "").startsWith("text/html")) { location.href = url; return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (push) history.pushState(null, "", answer.redirected ? answer.url : url);
    at = here();
    document.title = page.title;
    document.body.replaceWith(document.adoptNode(page.body));
    begin();
    by("main").focus({ preventScroll: true });
    scrollTo(0, 0);
  };

  const refresh = () => document.body.classList.toggle("may", Boolean(token() || document.body.dataset.may));

  const signIn = async () => {
    const dialog = by("signin"), field = dialog.querySelector("input");
    field.value = "";
    if ((await asked(dialog)) !== "yes" || !field.value.trim()) return;
    const shown = field.value.trim();
    field.value = "";
    let answer;
    try { answer = await fetch("/api/v1/steering", { headers: { Authorization: "Bearer " + shown } }); }
    catch (error) { say("The token cannot be sent: " + error.message, true); return; }
    if (!answer.ok) { say((await answer.json()).error, true); return; }
    sessionStorage.setItem(KEY, shown);
    if (document.body.classList.contains("stranger")) { await show(location.href, false); return; }
    begin();
    say("Signed in. The token is kept in this tab only.");
  };

  const asked = (dialog) => new Promise((done) => {
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => done(dialog.returnValue), { once: true });
    dialog.showModal();
  });

  const act = async (button) => {
    const { post, with: rest, confirm } = button.dataset, words = button.textContent;
    const body = JSON.parse(rest || "{}");
    if (confirm) {
      by("question").textContent = confirm;
      by("ask").querySelector("button[value=yes]").textContent = words;
      const reason = by("ask").querySelector("input");
      reason.value = "";
      if ((await asked(by("ask"))) !== "yes") return;
      if (reason.value.trim()) body.reason = reason.value.trim();
    }
    try {
      const answer = await fetch(post, { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body) });
      const said = await answer.json();
      say(said.words || said.error, !answer.ok);
    } catch (error) { say(words + " failed: " + error.message, true); }
  };

  const copy = async (button) => {
    const text = button.dataset.copy;
    try { await navigator.clipboard.writeText(text); }
    catch (error) {
      // Browsers keep the clipboard from pages that came without TLS.
      const field = document.createElement("textarea");
      field.value = text;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };

  document.addEventListener("click", (event) => {
    const copies = event.target.closest("[data-copy]");
    if (copies) { copy(copies); return; }
    const closes = event.target.closest("[data-close]");
    if (closes) { closes.closest("dialog").close("no"); return; }
    const button = event.target.closest("[data-post]");
    if (button) { act(button); return; }
    if (event.target.closest("#key")) {
      if (token()) { sessionStorage.removeItem(KEY); sessionStorage.setItem(KEY + "-out", "1"); begin(); } else signIn();
      return;
    }
    const link = event.target.closest("a[href]");
    if (link && token() && link.origin === location.origin && !link.hash && !link.hasAttribute("download") && event.button === 0 &&
        !event.metaKey && !event.ctrlKey && !event.shiftKey) {
      event.preventDefault();
      show(link.href, true);
    }
  });
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "get" || !token()) return;
    event.preventDefault();
    show(new URL(event.target.action).pathname + "?" + new URLSearchParams(new FormData(event.target)), true);
  });
  document.addEventListener("keydown", (event) => {
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, select, textarea, dialog");
    const isK = event.key === "k" && (event.ctrlKey || event.metaKey) && !event.target.closest("dialog");
    const field = by("find");
    if (field && (isSlash || isK)) { event.preventDefault(); field.focus(); field.select(); }
    if (event.key === "Escape" && event.target === field) field.blur();
  });
  // A page that the browser keeps for the way back would keep its connection, and a browser opens only a few.
  addEventListener("pagehide", () => { if (stream) stream.abort(); });
  addEventListener("pageshow", (event) => { if (event.persisted) begin(); });
  // A way within the page, such as the one to the content, leads to no other page.
  addEventListener("popstate", () => { if (token() && at !== here()) show(location.href, false); });

  const begin = () => {
    now = Number(document.body.dataset.now) || Date.now();
    // The token of a demo is no secret, and typing it teaches nobody anything.
    const given = document.body.dataset.token;
    if (given && !token() && !sessionStorage.getItem(KEY + "-out")) sessionStorage.setItem(KEY, given);
    refresh();
    showClock();
    if (by("key")) by("key").textContent = token() ? "Sign out" : (document.body.classList.contains("stranger") ? "Sign in" : "Sign in to act");
    tick();
    follow();
  };
  if (document.body.classList.contains("stranger") && token()) show(location.href, false); else begin();
})();
