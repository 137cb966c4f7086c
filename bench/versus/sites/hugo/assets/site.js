const button = document.getElementById("dark");

function show(dark) {
  document.documentElement.style.background = dark ? "#111" : "#fff";
  document.body.style.color = dark ? "#ddd" : "#222";
}

show(localStorage.getItem("dark") === "yes");
button.addEventListener("click", () => {
  const dark = localStorage.getItem("dark") !== "yes";
  localStorage.setItem("dark", dark ? "yes" : "no");
  show(dark);
});
