// Answers as Netlify's engine (netlify-redirector) and Cloudflare's asset server (@cloudflare/pages-shared) do.
//
//     node answers.js NODE_MODULES
//
// Each line of input is a site: {redirects, headers, files, probes, cloudflare}, the first two being texts or null; a
// probe is {path, target, query, scheme, host, language, cookies}. Each line of output is the list of answers to the
// probes of a site: {netlify, cloudflare}. netlify: what the engine finds for the path, and if rules have a percent sign,
// for the path as the client encodes it. cloudflare: {status, location, file, fields}, with those fields that a pattern
// of _headers which matches has, also if it removes them.
"use strict";
const fs = require("fs");
const path = require("path");
const readline = require("readline");

const modules = path.resolve(process.argv[2]);
const { transform } = require(path.join(modules, "sucrase"));
require.extensions[".ts"] = (module, file) =>
	module._compile(transform(fs.readFileSync(file, "utf8"), { transforms: ["typescript", "imports"] }).code, file);

const redirector = require(path.join(modules, "netlify-redirector"));
const pages = path.join(modules, "@cloudflare/pages-shared");
const { generateHandler } = require(path.join(pages, "asset-server/handler.ts"));
const { createMetadataObject } = require(path.join(pages, "metadata-generator/createMetadataObject.ts"));
const { generateRulesMatcher } = require(path.join(pages, "asset-server/rulesEngine.ts"));
const { parseHeaders } = require(path.join(pages, "metadata-generator/parseHeaders.ts"));
const { parseRedirects } = require(path.join(pages, "metadata-generator/parseRedirects.ts"));

function netlify(matcher, probe, path) {
	const headers = { "x-language": probe.language };
	return matcher.match({
		scheme: probe.scheme,
		host: probe.host,
		path,
		query: probe.query,
		getHeader: (name) => headers[name.toLowerCase()] || "",
		getCookie: (name) => probe.cookies[name] || "",
	});
}

async function cloudflare(metadata, files, probe) {
	const query = probe.query ? `?${probe.query}` : "";
	const request = new Request(`${probe.scheme}://${probe.host}${probe.target}${query}`);
	let found = null;
	const response = await generateHandler({
		request,
		metadata,
		logError: (error) => {
			throw error;
		},
		findAssetEntryForPath: async (name) => (files.has(name) ? name : null),
		getAssetKey: (name) => name,
		negotiateContent: () => ({ encoding: null }),
		fetchAsset: async (name) => {
			found = name;
			return { body: null, contentType: "text/plain" };
		},
	});
	const matching = generateRulesMatcher(metadata.headers?.rules)({ request });
	const names = new Set(matching.flatMap(({ set = {}, unset = [] }) => [...Object.keys(set), ...unset]).map((name) => name.toLowerCase()));
	const fields = Object.fromEntries([...names].map((name) => [name, response.headers.get(name)]));
	return { status: response.status, location: response.headers.get("location"), file: found, fields };
}

async function answer(site) {
	const matcher = site.redirects === null ? null : await redirector.parsePlain(site.redirects, {});
	let metadata = null;
	if (site.cloudflare)
		metadata = createMetadataObject({
			redirects: site.redirects === null ? undefined : parseRedirects(site.redirects),
			headers: site.headers === null ? undefined : parseHeaders(site.headers),
		});
	const files = new Set(site.files), answers = [], encoded = site.redirects?.includes("%");
	for (const probe of site.probes)
		answers.push({
			netlify: matcher && [probe.path, ...(encoded ? [probe.target] : [])].map((path) => netlify(matcher, probe, path)),
			cloudflare: metadata && (await cloudflare(metadata, files, probe)),
		});
	return answers;
}

(async () => {
	for await (const line of readline.createInterface({ input: process.stdin }))
		process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
})();
