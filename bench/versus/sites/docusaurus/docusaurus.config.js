export default {
  title: "Handbook",
  url: "https://localhost",
  baseUrl: "/",
  markdown: { format: "md" },
  onBrokenLinks: "ignore",
  presets: [
    [
      "classic",
      { docs: { routeBasePath: "docs", sidebarPath: "./sidebars.js" }, blog: false, theme: { customCss: "./src/css/custom.css" } },
    ],
  ],
  themeConfig: {
    navbar: { title: "Handbook", items: [{ to: "/docs/first", label: "Docs" }] },
    footer: { copyright: "Written by those who run it." },
  },
};
