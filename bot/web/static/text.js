/* The page's own words in the language that the server chose. English stands in the code; the other languages come from
   the bot's catalogue (CONTRIBUTING.md) in texts.js. */
import { LANGUAGE, LANGUAGES, TEXTS } from "./texts.js";

export { LANGUAGE };

// Dates and numbers as the browser writes them, if it speaks the page's language.
export const LOCALE = (navigator.languages || []).find((each) => each.split("-")[0] === LANGUAGE.split("-")[0]) || LANGUAGE;

const NUMBER = new Intl.NumberFormat(LOCALE);
const A_YEAR_S = 365 * 24 * 3600;

export function number(value, digits) {
  if (digits === undefined) return NUMBER.format(value);
  return new Intl.NumberFormat(LOCALE, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
}

function pieces(english) {
  return (TEXTS[english] ?? english).split(/\{(\w+)\}/);
}

/* Return a sentence in the page's language. `english`: a literal, which the server finds in the code. `values`: what
   fills its {placeholders}. */
export function t(english, values = {}) {
  return pieces(english).map((piece, place) => {
    if (place % 2 === 0) return piece;
    const value = values[piece];
    return typeof value === "number" ? number(value) : String(value ?? "");
  }).join("");
}

/* Return a sentence about a number of things; both forms may use {count}. */
export function counted(count, one, many, values = {}) {
  return t(count === 1 ? one : many, { count, ...values });
}

/* Return a sentence as a list of texts and elements, for `el`. `values`: elements. */
export function around(english, values) {
  return pieces(english).map((piece, place) => (place % 2 ? values[piece] : piece));
}

/* Let a select change the language. The choice is kept in a cookie that says nothing but the language. */
export function chooseLanguage(select) {
  for (const [code, name] of Object.entries(LANGUAGES)) {
    const option = document.createElement("option");
    option.value = option.lang = code;
    option.textContent = name;
    option.selected = code === LANGUAGE;
    select.append(option);
  }
  select.addEventListener("change", () => {
    document.cookie = `roomtone-language=${select.value}; Max-Age=${A_YEAR_S}; Path=/; SameSite=Strict`;
    location.reload();
  });
}
