/** What is wrong, as a sentence with a way out. */

import { el } from "./dom.js";
import { hasText, number, t } from "./i18n.js";

/**
 * @param {HTMLElement} strip Where it is shown.
 * @param {Record<string, () => void>} ways What the buttons do: retry, shorten, document, key.
 */
export function createNotice(strip, ways) {
  let clock = 0;

  function show(problem) {
    clearInterval(clock);
    strip.hidden = !problem;
    if (!problem) return strip.replaceChildren();
    const { code } = problem;
    strip.classList.toggle("calm", code === "not_ready");
    const sentence = el("p", { role: "alert" }, sentenceOf(problem));
    const countdown = el("span.quiet", { "aria-hidden": "true" });
    strip.replaceChildren(sentence, countdown, ...waysOut(code));
    if (problem.until) {
      const tick = () => {
        const seconds = Math.max(0, Math.ceil((problem.until - Date.now()) / 1000));
        countdown.textContent = t("problem.countdown", { n: seconds });
      };
      tick();
      clock = setInterval(tick, 250);
    }
    return undefined;
  }

  function waysOut(code) {
    const names = { too_long: ["shorten", "document"], offline: [], not_ready: [], unprocessable: [], no_swap: [], missing_key: ["key"], wrong_key: ["key"] }[code] ?? ["retry"];
    return names.map((name) => el("button", { onclick: ways[name] }, t(`way.${name}`)));
  }

  return { show };
}

function sentenceOf(problem) {
  const values = { ...problem, limit: number(problem.limit ?? 0), over: number(problem.over ?? 0) };
  values.reason = problem.reason ?? t("problem.loading");
  values.message = problem.message ?? "";
  return hasText(`problem.${problem.code}`) ? t(`problem.${problem.code}`, values) : t("problem.internal", values);
}
