// Keeps a page of the console live: takes its changes as server-sent events, puts each changed
// piece in the place of the old one, and says so when nothing comes any more. Without it the page
// shows what was so when it was loaded, with the time; so does a page that has no changes to come.
"use strict";
(() => {
  const BEAT_MS = 20000; // the server says something at least every few seconds
  const AGAIN_MS = 5000;
  const parts = document.getElementById("parts");
  const live = document.getElementById("live");
  const address = document.body.dataset.events;
  let serverMs = Number(document.body.dataset.now);
  let heardAt = performance.now();
  let source = null;
  let said = "";

  const nowMs = () => serverMs + performance.now() - heardAt;

  const say = (text, isLost) => {
    if (text === said) return;
    said = text;
    live.textContent = text;
    live.classList.toggle("lost", isLost);
    document.body.classList.toggle("lost", isLost);
  };

  const clock = (ms) => new Date(ms).toISOString().slice(11, 19) + " UTC";

  const hear = (ms) => {
    serverMs = ms;
    heardAt = performance.now();
    say("Live", false);
  };

  const lose = () =>
    say(`NOT live since ${clock(serverMs)}: what stands here may be old`, true);

  const age = (ms) => {
    const s = Math.max(0, Math.round((nowMs() - ms) / 1000));
    if (s < 100) return `${s} s ago`;
    if (s < 7200) return `${Math.round(s / 60)} min ago`;
    if (s < 172800) return `${Math.round(s / 3600)} h ago`;
    return `${Math.round(s / 86400)} days ago`;
  };

  const tellAges = () => {
    for (const time of document.querySelectorAll("time[data-ms]")) {
      if (!time.title) time.title = time.textContent;
      const text = age(Number(time.dataset.ms));
      if (time.textContent !== text) time.textContent = text;
    }
  };

  // Pieces that have changed are replaced whole; what a reader has opened or stands on stays so.
  const replacePart = (old, html) => {
    const fresh = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
    const open = new Set([...old.querySelectorAll("details[open][id]")].map((one) => one.id));
    for (const one of fresh.querySelectorAll("details[id]")) one.open = open.has(one.id);
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const place = focused ? [...old.querySelectorAll("a, [tabindex], summary")].indexOf(focused) : -1;
    const scrolled = [...old.querySelectorAll(".wide")].map((one) => one.scrollLeft);
    old.replaceWith(fresh);
    [...fresh.querySelectorAll(".wide")].forEach((one, i) => { one.scrollLeft = scrolled[i] || 0; });
    if (place >= 0) fresh.querySelectorAll("a, [tabindex], summary")[place]?.focus({ preventScroll: true });
  };

  const take = (changes) => {
    const there = new Map([...parts.children].map((one) => [one.id, one]));
    const wanted = new Set(changes.map(([id]) => id));
    for (const [id, one] of there) if (!wanted.has(id)) one.remove();
    changes.forEach(([id, html], place) => {
      const old = there.get(id);
      if (!old) {
        const fresh = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
        parts.insertBefore(fresh, parts.children[place] || null);
      } else if (html !== null && html !== old.outerHTML) {
        replacePart(old, html);
      }
    });
    tellAges();
  };

  const listen = () => {
    source = new EventSource(address);
    source.addEventListener("beat", (event) => hear(Number(event.data)));
    source.addEventListener("parts", (event) => {
      const [ms, changes] = JSON.parse(event.data);
      hear(ms);
      take(changes);
    });
    source.onerror = () => {
      lose();
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, AGAIN_MS);
    };
  };

  tellAges();
  setInterval(() => {
    tellAges();
    if (address && performance.now() - heardAt > BEAT_MS) lose();
  }, 1000);
  if (address) listen();
})();
