"""The game in the shared tab: a page with a head-up display over a chequered background."""

from __future__ import annotations

from playwright.async_api import Page

# `getDisplayMedia` returns the tab with this title without asking.
SHARED_TITLE = "A game to share"
GAME = f"""<!doctype html><meta charset="utf-8"><title>{SHARED_TITLE}</title>
<style>
  html {{ background: #28323c; color: #fff; font: 600 34px sans-serif; text-shadow: 0 0 4px #000 }}
  body {{ margin: 0; height: 100vh; background: repeating-conic-gradient(#28323c 0 25%, #333f3a 0 50%) 0 / 90px 90px }}
  p {{ position: absolute; margin: 0 }}
</style>
<p style="left: 50px; top: 40px" id="map">Tokyo 2099</p>
<p style="left: 50px; bottom: 40px" id="health">HP 87</p>
<p style="right: 50px; top: 40px" id="round">Round 2 of 3</p>
<p style="left: 650px; top: 330px" id="chat"></p>"""


async def show(game: Page, where: str, text: str) -> None:
    """Show a text in one element of the game."""
    await game.evaluate("([where, text]) => { document.getElementById(where).textContent = text }", [where, text])
