// Draws each diagram in the page's colours, and again when the reader changes them.
const sources = new Map();
const preference = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.body.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && preference.matches);
}

function draw() {
  for (const element of document.querySelectorAll("pre.mermaid")) {
    if (!sources.has(element)) sources.set(element, element.textContent);
    element.removeAttribute("data-processed");
    element.textContent = sources.get(element);
  }
  mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: isDark() ? "dark" : "neutral" });
  mermaid.run();
}

document.addEventListener("DOMContentLoaded", () => {
  draw();
  preference.addEventListener("change", draw);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
});
