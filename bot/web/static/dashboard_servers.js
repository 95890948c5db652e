/* The operator's page of all servers: what they have used, and which of them the bot serves. */
import { t } from "/page/text.js";
import { ask, el } from "./dom.js";

export async function showServers(main, said = "") {
  const { used, servers } = await ask("/api/servers");
  const told = el("p", { role: "status", text: said });
  const id = el("input", { type: "text", id: "server", inputmode: "numeric", maxlength: 20, autocomplete: "off" });
  const decide = async (server, served) => {
    try {
      await showServers(main, (await ask("/api/servers", { server, served })).told);
    } catch (failure) {
      if (failure.status === 401) location.reload();
      told.textContent = failure.message;
    }
  };
  const state = (served) => (served === null ? null : el("span", { class: "tag", text: served ? t("admitted") : t("refused") }));
  main.replaceChildren(el("h1", { text: t("Servers"), tabindex: "-1" }), el("p", { text: used }),
    el("form", { class: "search", onsubmit: (event) => {
      event.preventDefault();
      decide(id.value.trim(), true);
    } }, el("label", { for: "server", text: t("Id of another server") }), el("div", {}, id, el("button", { type: "submit", class: "primary", text: t("Admit") }))),
    told,
    el("ul", { class: "cards" }, servers.map((server) => {
      const button = (served, words) => (server.served === served ? null
        : el("button", { type: "button", class: "plain", text: words, onclick: () => decide(server.id, served) }));
      return el("li", { class: "card" }, el("h2", {}, el("span", { lang: "", text: server.name || server.id }), state(server.served)),
        el("p", { class: "quiet", text: server.used }), button(true, t("Admit")), " ", button(false, t("Refuse")));
    })));
}
