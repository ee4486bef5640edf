/** Small helpers around the document. */

export const $ = (selector, root = document) => root.querySelector(selector);

/** Make an element: el("button.strong", { onclick, "aria-label": … }, child, …). Null and false children are left out. */
export function el(kind, attributes = {}, ...children) {
  const [tag, ...classes] = kind.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  return fill(node, attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Hand a file to the browser's downloads. */
export function download(name, data, type = "text/plain;charset=utf-8") {
  const url = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Copy a text, also where the page came over plain http from another host. */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = el("textarea.unseen");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Show on a button for a moment that it did its work. */
export function flash(button, text) {
  const before = (button.dataset.label ??= button.textContent);
  button.textContent = text;
  announce(text);
  setTimeout(() => (button.textContent = before), 1500);
}

/** Say something to a screen reader. */
export function announce(text) {
  $("#announcer").textContent = text;
}

/** Return a function that runs `work` once, before the next frame, however often it is called. */
export function perFrame(work) {
  let wanted = false;
  return () => {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(() => {
      wanted = false;
      work();
    });
  };
}

/** Open a modal panel that Esc, its close button and a click outside close. */
export function openDialog(kind, title, closeLabel, ...content) {
  const close = el("button", { "aria-label": closeLabel, title: closeLabel, onclick: () => dialog.close() }, "✕");
  const heading = el("h2", { id: "dialog-title" }, title);
  const dialog = el(`dialog.${kind}`, { "aria-labelledby": "dialog-title" },
    el("div.panel", {}, el("header", {}, heading, close), ...content));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
