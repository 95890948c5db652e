/* The dashboard's page: login, and which view is shown. The part after # in the address names the view.

   A login link's secret is after # too, where no server and no log sees it. */
import { around, chooseLanguage, t } from "/page/text.js";
import { ask, at, el } from "./dom.js";
import { stopFollowing } from "./events.js";
import { showSearch, showSession, showSessions } from "./history.js";
import { showRoom, showRooms } from "./live.js";
import { showServers } from "./servers.js";

const main = at("main");
let shown = 0;

/* Tell what is wrong with the connection. The element is never hidden: a screen reader speaks only what changes in it. */
function banner(text) {
  at("banner").textContent = text;
}

function view(name, page, title) {
  document.body.dataset.view = name;
  document.title = title ? `${title} · Roomtone` : "Roomtone";
  for (const link of document.querySelectorAll("[data-page]")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/* Show the view that the address names. `byPerson`: they came here within the page, so that the focus moves too: to the
   view's heading, or to that of the reply, so that the next one is a key away. */
async function route(byPerson) {
  const mine = shown += 1;
  stopFollowing();
  banner("");
  delete document.body.dataset.room;
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decode);
  document.body.dataset.view = "opening";
  // Each view has an element of its own: one that is still being read never draws over the next.
  const stage = el("div");
  main.replaceChildren(stage);
  try {
    const name = await draw(stage, parts, () => mine === shown);
    if (mine !== shown) return;
    const title = name === "live" ? t("Live") : main.querySelector("h1").textContent;
    view(name, ["live", "servers"].includes(name) ? name : "history", title);
  } catch (failure) {
    if (mine !== shown) return;
    if (failure.status === 401) return open();
    main.replaceChildren(el("section", { class: "card" }, el("h1", { tabindex: "-1", text: failure.status === 404 ? t("Not found") : t("This does not work now") }), el("p", { text: failure.message })));
    view("problem", "", t("Problem"));
  }
  const reply = location.hash.includes("/reply/") ? at("seen-title") : null;
  const heading = reply || main.querySelector("h1");
  if (byPerson && heading) heading.focus({ preventScroll: !reply });
  return undefined;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/* Draw a view into `stage` and return its name. `isShown`: whether the view is still wanted. */
async function draw(stage, [page, name, what, number], isShown) {
  const seq = /^\d{1,9}$/.test(number || "") ? Number(number) : undefined;
  if (page === "room" && name) await showRoom(stage, name, banner, isShown);
  else if (page === "search" && name) await showSearch(stage, name);
  else if (page === "history" && name) await showSession(stage, name, { turn: what === "turn" ? seq : undefined, reply: what === "reply" ? seq : undefined });
  else if (page === "history") await showSessions(stage);
  else if (page === "servers") await showServers(stage);
  else {
    await showRooms(stage, banner, isShown);
    return "live";
  }
  return page === "room" ? "live" : page;
}

// -- login ----------------------------------------------------------------------------------------------------------

function showLogin(answer, problem) {
  view("login", "", t("Log in"));
  at("pages").hidden = at("viewer").hidden = true;
  const withDiscord = answer && answer.discord;
  main.replaceChildren(el("section", { class: "card login" },
    el("h1", { tabindex: "-1", text: t("Log in") }),
    problem ? el("p", { class: "problem", role: "alert", text: problem }) : null,
    withDiscord ? el("p", { text: t("You can see the bot on servers that you manage, and on servers where you have a role that can use it. Discord tells the bot only who you are.") }) : null,
    withDiscord ? el("p", {}, el("button", { type: "button", class: "primary", id: "discord", text: t("Log in with Discord"), onclick: toDiscord })) : null,
    el("h2", { text: withDiscord ? t("If you run the bot") : t("Open the bot's login link") }),
    el("p", {}, around("The login link is in the file {file} in the bot's data folder. A bot that you start in a terminal also shows it there. Each link works in one browser only.", { file: el("code", { lang: "", text: "dashboard-link" }) }))));
  main.querySelector("h1").focus();
}

async function toDiscord() {
  at("discord").disabled = true;
  try {
    location.assign((await ask("/api/login/discord", {})).url);
  } catch (failure) {
    showLogin({ discord: true }, failure.message);
  }
}

/* Use a login link, or what Discord sent back. Returns a sentence for who is not logged in then. */
async function useLogin() {
  const back = new URLSearchParams(location.search);
  const token = location.hash.slice(1);
  if (!back.has("code") && !back.has("error") && !token) return "";
  // Secrets leave the address and the browser's history.
  history.replaceState(null, "", "/");
  try {
    if (back.has("error")) return t("Discord did not log you in. Try again.");
    if (back.has("code")) await ask("/api/login/discord/back", { code: back.get("code"), state: back.get("state") || "" });
    else await ask("/api/login", { token });
    return t("You are logged in, but your browser keeps no cookies of this address. Allow them, and log in again.");
  } catch (failure) {
    return failure.message;
  }
}

/* Begin anew: log in if the address has a login in it, then show the view or the login. */
async function open() {
  shown += 1;
  stopFollowing();
  banner("");
  let problem = "";
  if (location.pathname === "/login") {
    problem = await useLogin();
    if (location.pathname === "/login") history.replaceState(null, "", "/");
  }
  try {
    const me = await ask("/api/me");
    if (!me.name) return showLogin(me, problem);
    at("viewer-name").textContent = me.operator ? t("Operator") : me.name;
    if (me.shards) at("viewer-name").textContent = t("Operator, shards {shards}", { shards: me.shards });
    at("pages").hidden = at("viewer").hidden = false;
    at("servers").hidden = !me.operator;
  } catch (failure) {
    main.replaceChildren(el("section", { class: "card" }, el("h1", { tabindex: "-1", text: t("This does not work now") }), el("p", { text: failure.message })));
    return view("problem", "", t("Problem"));
  }
  return route(false);
}

chooseLanguage(at("language"));
at("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
at("logout").addEventListener("click", async () => {
  await ask("/api/logout", {}).catch(() => undefined);
  // Without the event of a changed address: nothing can be read any more.
  history.replaceState(null, "", "/");
  await open();
});
// The link to the view that is shown reads it anew: after a failure, or when the only room is not the only one any more.
at("pages").addEventListener("click", ({ target }) => {
  if (target.hash === location.hash) route(true);
});
addEventListener("hashchange", () => route(true));
// The browser shows the page as it was left, and its events have ended.
addEventListener("pageshow", ({ persisted }) => { if (persisted) open(); });
open();
