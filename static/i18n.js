/** The page's words; both languages stand in one table, strings.json, of which the service gives the column asked for. */

export const language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";

const table = await (await fetch(new URL(`strings.${language}.json`, import.meta.url))).json();

/** Return a text with its `{places}` filled; `n` of one takes the key with ".one" where there is such. */
export function t(key, values = {}) {
  const text = (values.n === 1 && table[`${key}.one`]) || table[key];
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Whether there is a text of that name. */
export const hasText = (key) => key in table;

/** Write a number as the page's language does. */
export const number = (value, digits = 0) =>
  value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
