/** The service, as functions. Every failure is an ApiError with a code the page has a sentence for. */

import { get, keep } from "./state.js";

export class ApiError extends Error {
  constructor(code, message = "", { status = 0, retryAfter = 0 } = {}) {
    super(message);
    Object.assign(this, { code, status, retryAfter });
  }
}

keep("key", "");

async function send(path, { headers, ...options } = {}) {
  const key = get("key");
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...headers, ...(key && { Authorization: `Bearer ${key}` }) } });
  } catch (error) {
    throw error.name === "AbortError" ? error : new ApiError("offline");
  }
  if (!response.ok) throw await readError(response);
  return response;
}

async function readError(response) {
  const body = await response.json().catch(() => ({}));
  const code = body.code ?? (response.status >= 502 ? "offline" : "internal");
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  return new ApiError(code, body.error, { status: response.status, retryAfter });
}

const getJson = async (path, signal) => (await send(path, { signal })).json();

function postJson(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return send(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

export const fetchPageData = () => getJson("/page.json");
export const fetchStatus = (signal) => getJson("/status.json", signal);

/** Translate at once. */
export const translate = async (body, signal) => (await postJson("/translate", body, signal)).json();

/** Translate, yielding `{type: "segment" | "done", data}` as they come. */
export async function* streamTranslation(body, signal) {
  const response = await postJson("/translate", { ...body, stream: true }, signal);
  for await (const { type, data } of readEvents(response.body)) {
    if (type === "error") throw new ApiError(data.code, data.error);
    yield { type, data };
    if (type === "done") return;
  }
  throw new ApiError("offline");
}

async function* readEvents(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await readOrFail(reader);
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const [, type, data] = /^event: (\w+)\ndata: (.*)$/s.exec(block) ?? [];
      if (type) yield { type, data: JSON.parse(data) };
    }
  }
}

async function readOrFail(reader) {
  try {
    return await reader.read();
  } catch (error) {
    throw error.name === "AbortError" ? error : new ApiError("offline");
  }
}

/** Vectors of texts, in their order. */
export async function embed(texts, signal) {
  const { result } = await (await postJson("/predict", { task_type: "embedding", input_text: texts }, signal)).json();
  return result.map((entry) => entry.embedding);
}

/** File translation: a job that is asked after until it is done. */
export const documents = {
  async start(file, source, target) {
    const form = new FormData();
    form.append("file", file);
    if (source && source !== "auto") form.append("source", source);
    if (target) form.append("target", target);
    return (await send("/documents", { method: "POST", body: form })).json();
  },
  status: (id) => getJson(`/documents/${encodeURIComponent(id)}`),
  result: async (id) => (await send(`/documents/${encodeURIComponent(id)}/result`)).blob(),
  cancel: (id) => send(`/documents/${encodeURIComponent(id)}`, { method: "DELETE" }),
};

/** Resolve once the service answers that it is ready; tell `onReason` why it is not. */
export async function untilReady(signal, onReason = () => {}) {
  for (;;) {
    const data = await fetchPageData().catch(() => ({ ready: false, reason: null }));
    if (signal?.aborted) return null;
    if (data.ready) return data;
    onReason(data.reason);
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}
