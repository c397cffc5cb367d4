// Sets the theme before the first paint; stands in <head> before the styles. Others call lineclearTheme()
// after a change of the settings. It must stay a classic script: a module would run too late.
function lineclearTheme() {
  let theme = "auto";
  let hours = "";
  try {
    theme = localStorage.getItem("lineclear.theme") || theme;
    hours = localStorage.getItem("lineclear.night") || hours;
  } catch {
    hours = "";
  }
  const now = new Date().toTimeString().slice(0, 5);
  const [from, to] = hours.split("-");
  const night = to && (from < to ? from <= now && now < to : from <= now || now < to);
  if (theme === "auto" && night) theme = "night";
  if (theme === "auto") theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  const colour = { light: "#f6f4f0", dark: "#121416", night: "#070504" }[theme];
  document.querySelector("meta[name=theme-color]").content = colour;
  dispatchEvent(new Event("theme"));
}
lineclearTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", lineclearTheme);
addEventListener("storage", lineclearTheme);
setInterval(lineclearTheme, 60_000);
