// Light or dark colours: those of the system, until the reader chooses others with the button `#theme`. The choice is
// remembered. The root element has the theme as `data-theme`; when it changes, the document gets the event "themechange".

(() => {
  const KEY = "unweave_theme";
  const YEAR = 365 * 24 * 3600; // in seconds
  const system = matchMedia("(prefers-color-scheme: dark)");
  const other = { light: "dark", dark: "light" };
  const ofSystem = () => (system.matches ? "dark" : "light");

  // Each explorer has a port of its own, and ports share cookies but no storage; a page from a disk has no cookies.
  function recall() {
    if (location.protocol !== "file:") return document.cookie.match(`${KEY}=(light|dark)`)?.[1];
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is turned off
    }
  }

  function remember(theme) {
    if (location.protocol !== "file:") {
      // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API works with https only
      document.cookie = `${KEY}=${theme ?? ""}; path=/; SameSite=Strict; max-age=${theme ? YEAR : 0}`;
      return;
    }
    try {
      if (theme) localStorage.setItem(KEY, theme);
      else localStorage.removeItem(KEY);
    } catch {
      // Storage is turned off: the choice holds for this page.
    }
  }

  let chosen = recall();
  const theme = () => (chosen in other ? chosen : ofSystem());
  const apply = () => {
    document.documentElement.dataset.theme = theme();
    document.getElementById("theme")?.setAttribute("aria-pressed", theme() === "dark");
    document.dispatchEvent(new Event("themechange"));
  };
  // Whoever chooses what the system has follows the system again.
  const choose = () => {
    const wanted = other[theme()];
    chosen = wanted === ofSystem() ? null : wanted;
    remember(chosen);
    apply();
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", choose);
    apply();
  });
})();
