/** One store: values by name, subscribers told of changes, some values kept in this browser. */

const PREFIX = "tandem.";
const WRITE_PAUSE_MS = 800;
const values = new Map();
const kept = new Set();
const listeners = new Map();

/** Declare a value that survives a reload. */
export function keep(name, fallback) {
  kept.add(name);
  let stored = null;
  try {
    stored = JSON.parse(localStorage.getItem(PREFIX + name));
  } catch {
    // What another version or a full disk left unreadable counts as absent.
  }
  values.set(name, stored ?? fallback);
}

export const get = (name) => values.get(name);

/** Set a value and tell whoever asked to hear of it. */
export function set(name, value) {
  values.set(name, value);
  if (kept.has(name)) writeSoon(name);
  for (const listener of listeners.get(name) ?? []) listener(value);
}

/** Call `listener` whenever one of the values changes. */
export function on(names, listener) {
  for (const name of [names].flat()) listeners.set(name, [...(listeners.get(name) ?? []), listener]);
}

// Writing is slow with a long text, so it waits for a pause; leaving the page does not wait.

const unwritten = new Set();
let timer = 0;

function writeSoon(name) {
  unwritten.add(name);
  clearTimeout(timer);
  timer = setTimeout(writeAll, WRITE_PAUSE_MS);
}

function writeAll() {
  for (const name of unwritten) write(name, values.get(name));
  unwritten.clear();
}

function write(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // No room, or storage is forbidden: the page works without.
  }
}

addEventListener("pagehide", writeAll);
document.addEventListener("visibilitychange", () => document.hidden && writeAll());
