/** File translation: each file is a job with its progress, a way to stop it and its download. */

import { documents } from "./api.js";
import { $, announce, download, el } from "./dom.js";
import { hasText, number, t } from "./i18n.js";
import { get, keep, on, set } from "./state.js";

const FIRST_LOOK_MS = 250;
const LONGEST_LOOK_MS = 2000;

keep("jobs", []); // {id, name, source, target, status, percent, error?, resultName?}

const isOpen = (job) => !["done", "failed", "cancelled"].includes(job.status);

/** Build the view. */
export function setUp(root) {
  const input = el("input", { type: "file", multiple: true, hidden: true, "aria-label": t("documents.choose"),
    onchange: () => (startAll(input.files), (input.value = "")) });
  const target = el("select", { "aria-label": t("to"), onchange: () => set("target", target.value) });
  const zone = el("div.dropzone", {},
    el("button.solid", { onclick: () => input.click() }, t("documents.choose")),
    el("span.quiet", {}, t("documents.drop")),
    el("span.space"),
    el("label.row.quiet", {}, t("to"), target),
    input);
  const list = el("ul.jobs", { "aria-label": t("documents.list") });
  const rows = new Map();
  root.append(el("h1.unseen", {}, t("documents")), el("p.quiet", {}, t("documents.about")), zone, list);

  const showTargets = () => {
    input.accept = (get("page").file_extensions ?? []).join();
    const from = $("#target-language").options;
    target.replaceChildren(...[...from].map((option) => el("option", { value: option.value }, option.textContent)));
    target.value = get("target");
  };
  on(["page", "target"], showTargets);

  zone.addEventListener("dragover", (event) => (event.preventDefault(), zone.classList.add("over")));
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    startAll(event.dataTransfer.files);
  });

  const startAll = (files) => [...files].forEach(start);

  async function start(file) {
    const job = { id: `local-${Date.now()}-${file.name}`, name: file.name, source: get("source"), target: get("target"),
      status: "sending", percent: 0 };
    set("call", { file: file.name });
    save(job);
    try {
      const { id } = await documents.start(file, job.source, job.target);
      drop(job);
      watch({ ...job, id, status: "queued" });
    } catch (error) {
      save({ ...job, status: "failed", error: sentence(error) });
    }
  }

  async function watch(job) {
    save(job);
    let pause = FIRST_LOOK_MS;
    let current = job;
    while (isOpen(current)) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 1.3, LONGEST_LOOK_MS);
      if (!get("jobs").some((other) => other.id === job.id && isOpen(other))) return;
      current = await look(current);
      save(current);
    }
    announce(`${current.name}: ${t(`job.${current.status}`)}`);
  }

  async function look(job) {
    try {
      const { status, percent, error, name } = await documents.status(job.id);
      return { ...job, status: status === "error" ? "failed" : status, percent, error, resultName: name };
    } catch (error) {
      return error.code === "offline" ? { ...job, status: "waiting" } : { ...job, status: "failed", error: sentence(error) };
    }
  }

  async function fetchResult(job) {
    try {
      download(job.resultName, await documents.result(job.id));
    } catch (error) {
      save({ ...job, status: "failed", error: sentence(error) });
    }
  }

  function stop(job) {
    if (isOpen(job)) save({ ...job, status: "cancelled" });
    else drop(job);
    documents.cancel(job.id).catch(() => {}); // gone already: the same to us
  }

  function drop(job) {
    set("jobs", get("jobs").filter((other) => other.id !== job.id));
    rows.get(job.id)?.remove();
    rows.delete(job.id);
  }

  function save(job) {
    const others = get("jobs");
    const isKnown = others.some((other) => other.id === job.id);
    set("jobs", isKnown ? others.map((other) => (other.id === job.id ? job : other)) : [job, ...others]);
    show(job);
  }

  function show(job) {
    const row = el("li", {},
      el("span.file", { title: job.name }, job.name),
      el("span.quiet", {}, describe(job)),
      el("div.row", {},
        job.status === "done" && el("button.strong", { onclick: () => fetchResult(job) }, t("documents.download")),
        el("button", { onclick: () => stop(job) }, t(isOpen(job) ? "documents.cancel" : "remove"))),
      isOpen(job) && el("progress", { max: 100, value: job.percent, "aria-label": job.name }));
    const before = rows.get(job.id);
    const hadFocus = before?.contains(document.activeElement);
    if (before) before.replaceWith(row);
    else list.prepend(row);
    rows.set(job.id, row);
    if (hadFocus) $("button", row).focus();
  }

  for (const job of [...get("jobs")].reverse()) {
    if (job.id.startsWith("local-") && isOpen(job)) drop(job); // was still being sent when the page was left
    else if (isOpen(job)) watch(job);
    else show(job);
  }
  return {
    enter() {
      showTargets();
      const file = get("incoming");
      set("incoming", null);
      if (file) start(file);
    },
    currentCall: () => {
      const { source, target: to } = { source: get("source"), target: get("target") };
      return { path: "/documents", form: { file: get("call")?.file ?? "report.docx", source, target: to } };
    },
  };
}

function describe(job) {
  if (job.status === "failed") return job.error || t("job.failed");
  const name = hasText(`job.${job.status}`) ? t(`job.${job.status}`) : job.status;
  return isOpen(job) && job.percent ? `${name} · ${number(Math.round(job.percent))} %` : name;
}

const sentence = (error) => error.message || t("problem.offline");
