// Prints the names of the files that a builder wrote, and what hosts answer to each link in its pages (see README here):
//     node answers.mjs NODE_MODULES DIR | gzip -9n > NAME.gz
// NODE_MODULES has @cloudflare/pages-shared, serve-handler and linkedom.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { createRequire } from "node:module";

const require = createRequire(path.resolve(process.argv[2], "x"));
const root = process.argv[3];
const serveHandler = require("serve-handler");
const { parseHTML } = require("linkedom");
const modules = path.resolve(process.argv[2]);
globalThis.HTMLRewriter ??= class { on() { return this; } transform(r) { return r; } };
const cloudflare = await import(`${modules}/@cloudflare/pages-shared/dist/asset-server/handler.js`);
const metadata = await import(`${modules}/@cloudflare/pages-shared/dist/metadata-generator/createMetadataObject.js`);

const names = fs.readdirSync(root, { recursive: true, withFileTypes: true })
	.filter((e) => e.isFile()).map((e) => path.relative(root, path.join(e.parentPath, e.name)))
	.filter((n) => !n.split("/").some((s) => s.startsWith(".")) && !["_headers", "_redirects"].includes(n)).sort();
const files = new Set(names);
const html = names.filter((n) => n.endsWith(".html"));

// The links in the pages, and each page itself in all ways to write it.
const links = new Set();
for (const name of html) {
	const base = `http://h/${name.split("/").map(encodeURIComponent).join("/")}`;
	const { document } = parseHTML(fs.readFileSync(path.join(root, name), "utf8"));
	for (const e of document.querySelectorAll("[href],[src]"))
		try {
			const url = new URL(e.getAttribute("href") ?? e.getAttribute("src"), base);
			if (url.host === "h") links.add(url.pathname);
		} catch { /* no URL */ }
	const page = "/" + name.replace(/(^|\/)index\.html$/, "$1").replace(/\.html$/, "");
	for (const link of [page, page.replace(/\/$/, "") || "/", page.replace(/\/?$/, "/"), `/${name}`]) links.add(encodeURI(link));
}

// An answer: the name of the file; ">" and where it redirects to; "listing"; or the status.
function netlify(link) { // as trailing-slash-guide measured it, with "pretty URLs"; the order of names is that of netlify-cli
	const p = decodeURIComponent(link).slice(1);
	const bare = p.replace(/\/$/, "");
	if (p && !p.endsWith("/")) {
		if (files.has(p)) return p;
		if (files.has(`${p}.html`)) return `${p}.html`;
		return files.has(`${p}/index.html`) ? `>${link}/` : "404";
	}
	if (bare && files.has(`${bare}.html`)) return `>${link.slice(0, -1)}`;
	return files.has(`${p}index.html`) ? `${p}index.html` : "404";
}

async function cloudflarePages(link) {
	let sent = "";
	const response = await cloudflare.generateHandler({
		request: new Request(`http://h${link}`),
		metadata: metadata.createMetadataObject({ deploymentId: undefined }),
		logError: (e) => { throw e; },
		findAssetEntryForPath: async (p) => (files.has(p.slice(1)) ? p.slice(1) : null),
		getAssetKey: (entry) => entry,
		negotiateContent: () => ({ encoding: null }),
		fetchAsset: async (key) => ({ body: new Response((sent = key)).body, contentType: "text/html" }),
	});
	if (response.status === 200) return sent;
	return response.status >= 300 && response.status < 400 ? `>${response.headers.get("location")}` : String(response.status);
}

const server = http.createServer((q, r) => serveHandler(q, r, { public: root, etag: true })).listen(0, "127.0.0.1");
await new Promise((done) => server.on("listening", done));
function serve(link) {
	return new Promise((done, failed) => {
		http.get({ port: server.address().port, host: "127.0.0.1", path: link }, (r) => {
			r.resume();
			const file = /filename="(.*)"/.exec(r.headers["content-disposition"] ?? "")?.[1];
			if (r.statusCode >= 300 && r.statusCode < 400) return done(`>${r.headers.location}`);
			if (r.statusCode !== 200) return done(String(r.statusCode));
			if (!file) return done("listing");
			const p = decodeURIComponent(link).slice(1);
			const bare = p.replace(/\/$/, "");
			done([p, `${bare}.html`, `${bare ? `${bare}/` : ""}index.html`].find((n) => files.has(n) && path.basename(n) === file) ?? `?${file}`);
		}).on("error", failed);
	});
}

process.stdout.write(`${names.join("\n")}\n\n`);
for (const link of [...links].sort()) {
	const answers = [netlify(link), await cloudflarePages(link), await serve(link)];
	const itself = answers.every((a) => a === decodeURIComponent(link).slice(1));
	process.stdout.write(`${(itself ? [link] : [link, ...answers]).join("\t")}\n`);
}
server.close();
