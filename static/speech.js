/** Reading aloud, where the browser can. */

import { t } from "./i18n.js";

/** @param {() => {text: string, language: string}} read Gives what a click shall read. */
export function setUpSpeech(button, read) {
  button.hidden = !("speechSynthesis" in window);
  const name = (isSpeaking) => (button.textContent = t(isSpeaking ? "stop" : "listen"));
  button.addEventListener("click", () => {
    const isMine = button.dataset.speaking === "true";
    speechSynthesis.cancel();
    button.dataset.speaking = "false";
    name(false);
    if (isMine) return;
    const { text, language } = read();
    const utterance = new SpeechSynthesisUtterance(text);
    utterance.lang = { zh: "zh-CN", "zh-Hant": "zh-TW", en: "en-US" }[language] ?? language;
    utterance.onend = utterance.onerror = () => {
      button.dataset.speaking = "false";
      name(false);
    };
    button.dataset.speaking = "true";
    name(true);
    speechSynthesis.speak(utterance);
  });
}
