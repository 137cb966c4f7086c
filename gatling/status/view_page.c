/* view_page.c - see view.h: the page for people. It has the names of curves and values in it, and loads only "json",
 * once a second. It has no double quotes, which would have to be escaped here. */
#include "gatling/status/view.h"

/* clang-format off */
static const char above[] =
	"<!doctype html>\n"
	"<html lang='en'>\n"
	"<meta charset='utf-8'>\n"
	"<meta name='viewport' content='width=device-width,initial-scale=1'>\n"
	"<title>gatling</title>\n"
	"<link rel='icon' href='data:,'>\n"
	"<style>\n"
	":root{color-scheme:light dark;--line:#8884;--quiet:#6a6a6a;--curve:#0b57d0;--fill:#0b57d022;--bad:#b3261e}\n"
	"@media(prefers-color-scheme:dark){:root{--quiet:#a3a3a3;--curve:#8ab4f8;--fill:#8ab4f822;--bad:#ff8a80}}\n"
	"html{background:Canvas;color:CanvasText}\n"
	"body{font:1rem/1.4 system-ui,sans-serif;max-width:72rem;margin:0 auto;padding:1rem}\n"
	"h1{font-size:1.3rem;margin:0}\n"
	"h2{font-size:1rem;margin:1.5rem 0 .4rem}\n"
	"header{display:flex;flex-wrap:wrap;gap:.3rem 1rem;align-items:baseline}\n"
	"header p{margin:0;color:var(--quiet);overflow-wrap:anywhere;flex:1 1 20rem}\n"
	"#notes{margin:.8rem 0 0;padding:0;list-style:none}\n"
	"#notes li{border-inline-start:.3rem solid var(--bad);padding:.2rem .6rem;margin:.3rem 0;background:#8881}\n"
	".choice{margin:1rem 0 .6rem;display:flex;gap:1rem}\n"
	".choice label{cursor:pointer}\n"
	"#curves{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,16rem),1fr));gap:.8rem}\n"
	"figure{margin:0;border:1px solid var(--line);border-radius:.5rem;padding:.5rem .7rem}\n"
	"figcaption{display:flex;justify-content:space-between;gap:.5rem;font-size:.9rem}\n"
	"figcaption b{font-variant-numeric:tabular-nums;white-space:nowrap}\n"
	"figure small{display:flex;justify-content:space-between;color:var(--quiet);font-variant-numeric:tabular-nums}\n"
	"svg{display:block;width:100%;height:3.5rem;margin:.2rem 0}\n"
	"svg.spark{width:7.5rem;height:1.2rem;margin:0;display:inline-block;vertical-align:middle}\n"
	"svg path{vector-effect:non-scaling-stroke}\n"
	".tables{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:0 1.5rem}\n"
	".wide{overflow-x:auto}\n"
	"table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
	"th{text-align:start;font-weight:normal;color:var(--quiet)}\n"
	"td,th:nth-child(n+2){text-align:end}\n"
	"td,th{padding:.1rem .4rem;border-bottom:1px solid var(--line)}\n"
	"#certificates td{text-align:start}\n"
	"#certificates td:nth-child(2){white-space:nowrap}\n"
	"footer{margin-top:1.5rem;color:var(--quiet);font-size:.9rem}\n"
	"a{color:var(--curve)}\n"
	"</style>\n"
	"<header><h1>gatling</h1><p id='about'>Loading.</p><span id='up'></span></header>\n"
	"<main>\n"
	"<noscript><p>This page needs scripts; <a href='text'>this one</a> does not.</p></noscript>\n"
	"<div role='status'><ul id='notes'></ul></div>\n"
	"<div class='choice'><label><input type='radio' name='span' value='seconds' checked> two minutes</label>\n"
	"<label><input type='radio' name='span' value='minutes'> an hour</label></div>\n"
	"<div id='curves'></div>\n"
	"<div class='tables' id='tables'></div>\n"
	"<h2>Workers</h2>\n"
	"<div class='wide' tabindex='0' role='region' aria-label='Workers'><table id='workers'></table></div>\n"
	"<section id='upstreams' hidden><h2>Upstreams</h2>\n"
	"<div class='wide' tabindex='0' role='region' aria-label='Upstreams'><table></table></div></section>\n"
	"<section id='certificates' hidden><h2>Certificates</h2>\n"
	"<div class='wide' tabindex='0' role='region' aria-label='Certificates'><table></table></div></section>\n"
	"</main>\n"
	"<footer>The same as <a href='json'>JSON</a>, <a href='metrics'>OpenMetrics</a> and <a href='text'>text</a>\n"
	"(gatling --top).</footer>\n"
	"<script>\n";

/* What put_curves() and put_tables() write comes before it. */
static const char below[] =
	"const $ = id => document.getElementById(id);\n"
	"const round = n => n >= 100 || n == Math.round(n) ? Math.round(n).toLocaleString('en') : n >= 1 ? n.toFixed(1) "
	": n.toPrecision(2);\n"
	"const bytes = n => { let u = 0; while (n >= 1000 && u < 4) { n /= 1000; u++; } return round(n) + ' ' + ['B', "
	"'kB', 'MB', 'GB', 'TB'][u]; };\n"
	"const time = s => s >= 1 ? round(s) + ' s' : s >= 0.001 ? round(s * 1e3) + ' ms' : round(s * 1e6) + ' µs';\n"
	"const rate = n => round(n) + '/s', rateOfBytes = n => bytes(n) + '/s';\n"
	"const shows = {'': round, bytes, seconds: time, '/s': rate, 'MB/s': rateOfBytes, 'ms': time, '%': n => round(100 * n) + ' %'};\n"
	"const make = (name, ...content) => {\n"
	"  const element = document.createElement(name);\n"
	"  element.append(...content);\n"
	"  return element;\n"
	"};\n"
	"const svg = (name, attributes) => {\n"
	"  const element = document.createElementNS('http://www.w3.org/2000/svg', name);\n"
	"  for (const key in attributes) element.setAttribute(key, attributes[key]);\n"
	"  return element;\n"
	"};\n"
	"const figures = curves.map(([name, title, unit]) => {\n"
	"  const show = shows[unit];\n"
	"  const now = make('b'), from = make('span'), most = make('span');\n"
	"  const picture = svg('svg', {viewBox: '0 0 100 40', preserveAspectRatio: 'none', role: 'img'});\n"
	"  const area = svg('path', {fill: 'var(--fill)'}), curve = svg('path', {fill: 'none', stroke: 'var(--curve)', "
	"'stroke-width': 1.5});\n"
	"  picture.append(area, curve);\n"
	"  $('curves').append(make('figure', make('figcaption', title, now), picture, make('small', from, most)));\n"
	"  return (data, span) => {\n"
	"    const values = data[span][name], count = span == 'seconds' ? 120 : 60, top = Math.max(...values, 0);\n"
	"    const x = i => 100 * (count - values.length + 1 + i) / count, y = v => 39 - 37 * (top ? v / top : 0);\n"
	"    const points = values.map((v, i) => x(i).toFixed(2) + ',' + y(v).toFixed(2));\n"
	"    now.textContent = show(data.now[name]);\n"
	"    most.textContent = 'most ' + show(top);\n"
	"    from.textContent = span == 'seconds' ? 'last 2 min' : 'last hour';\n"
	"    picture.setAttribute('aria-label', title + ': now ' + show(data.now[name]) + ', most ' + show(top));\n"
	"    curve.setAttribute('d', points.length ? 'M' + points.join('L') : '');\n"
	"    area.setAttribute('d', points.length ? 'M' + x(0) + ',39L' + points.join('L') + 'L' + x(values.length - 1) "
	"+ ',39Z' : '');\n"
	"  };\n"
	"});\n"
	"const spark = (values, count, top, what) => {\n"
	"  const picture = svg('svg', {viewBox: '0 0 120 20', preserveAspectRatio: 'none', role: 'img', 'class': 'spark'});\n"
	"  const points = values.map((v, i) => 120 - (values.length - 1 - i) * 120 / count + ',' + (19 - 18 * (top ? v / top : 0)).toFixed(1));\n"
	"  picture.setAttribute('aria-label', what + ': now ' + round(values.at(-1) || 0) + ', most ' + "
	"round(Math.max(...values, 0)));\n"
	"  picture.append(svg('path', {d: points.length ? 'M' + points.join('L') : '', fill: 'none', "
	"stroke: 'var(--curve)'}));\n"
	"  return picture;\n"
	"};\n"
	"const row = cells => make('tr', ...cells.map((cell, i) => make(i || cell === '' ? 'td' : 'th', cell)));\n"
	"const table = (title, rows) => make('section', make('h2', title), make('table', ...rows.map(row)));\n"
	"const fill = (id, list, head, cells) => {\n"
	"  $(id).hidden = !list.length;\n"
	"  $(id).querySelector('table').replaceChildren(row(head), ...list.map(item => row(cells(item))));\n"
	"};\n"
	"const counted = values => Object.entries(values).filter(([, n]) => n).map(([name, n]) => [name, round(n)]);\n"
	"const sum = values => Object.values(values).reduce((a, b) => a + b, 0);\n"
	"const valueOf = (t, name, label) => label ? t[name][label] : typeof t[name] == 'object' ? sum(t[name]) : t[name];\n"
	"const rows = (t, values) => values.flatMap(([words, name, label, unit, part, always]) => {\n"
	"  const n = valueOf(t, name, label), show = shows[unit];\n"
	"  return n || always ? [[words, (part && show(valueOf(t, part)) + ' of ') + show(n)]] : [];\n"
	"});\n"
	"const grown = (data, name) => sum(data.seconds[name]);\n"
	"const date = s => s ? new Date(s * 1000).toISOString().slice(0, 16).replace('T', ' ') : 'none yet';\n"
	"const problems = data => {\n"
	"  const t = data.total, found = [];\n"
	"  if (data.state == 'ending') found.push('This server is ending: it finishes the connections that it has.');\n"
	"  if (grown(data, 'kernel_lost') >= 1) found.push('In the last two minutes the kernel lost ' + "
	"round(grown(data, 'kernel_lost')) +\n"
	"    ' connections before the server saw them: raise net.core.somaxconn, or start more workers (-j).');\n"
	"  if (t.accept_queue_max && t.accept_queue > t.accept_queue_max / 2)\n"
	"    found.push('The accept queue is more than half full: clients come faster than they are answered.');\n"
	"  if (grown(data, 'refused') >= 1) found.push('In the last two minutes the server refused ' + round(grown(data, "
	"'refused')) +\n"
	"    ' connections or requests: the table of limits says why.');\n"
	"  if (grown(data, 'server_errors') >= 1) found.push('In the last two minutes ' + round(grown(data, "
	"'server_errors')) +\n"
	"    ' answers had a status of 5xx: stderr, or the error log, says why.');\n"
	"  if (t.memory_bytes > 0.9 * t.memory_max_bytes) found.push('Connections take nearly all of their memory "
	"(--limit memory).');\n"
	"  if (sum(t.connections) > 0.9 * t.connections_max) found.push('Nearly all connections are in use: raise the "
	"limit of descriptors (ulimit -n), or start more workers (-j).');\n"
	"  if (t.log_dropped_lines) found.push(round(t.log_dropped_lines) + ' lines of the access log were dropped: its "
	"disk is full or slow.');\n"
	"  for (const c of data.certificates)\n"
	"    if (!c.good) found.push(c.name + ' ' + (c.until ? 'keeps its certificate until ' + date(c.until) : 'has no "
	"certificate') + ': ' + c.result);\n"
	"  return found;\n"
	"};\n"
	"const duration = s => (s >= 86400 ? Math.floor(s / 86400) + ' d ' : '') + new Date(s * "
	"1000).toISOString().slice(11, 19);\n"
	"const show = data => {\n"
	"  const t = data.total, q = data.quantiles;\n"
	"  const notes = problems(data).join('|');\n"
	"  $('about').textContent = data.about;\n"
	"  $('up').textContent = 'up ' + duration(data.uptime_seconds);\n"
	"  if ($('notes').title != notes) {\n"
	"    $('notes').title = notes;\n"
	"    $('notes').replaceChildren(...problems(data).map(text => make('li', text)));\n"
	"  }\n"
	"  const span = document.querySelector('input:checked').value;\n"
	"  figures.forEach(draw => draw(data, span));\n"
	"  const more = {Answers: counted(t.answers), 'Times of the last 10 s': [...Object.keys(q.duration).map(p =>\n"
	"    [p, time(q.first_byte[p]) + ', ' + time(q.duration[p])]), ['', 'first byte, whole answer']]};\n"
	"  $('tables').replaceChildren(...tables.map(([title, ...values]) =>\n"
	"    table(title, [...rows(t, values), ...more[title] || []])));\n"
	"  fill('upstreams', data.upstreams, ['upstream', 'requests', 'under way', 'mean time', '5xx', 'failures', 'kept open'],\n"
	"    u => [u.address, round(u.requests), round(u.active), u.responses ? time(u.response_seconds / u.responses) : '',\n"
	"      round(u.errors), round(u.failures), round(u.idle)]);\n"
	"  fill('certificates', data.certificates, ['name', 'valid until, UTC', 'last result'], c => [c.name, date(c.until), "
	"c.result]);\n"
	"  const most = name => Math.max(...data.workers.flatMap(w => w[span][name]), 0);\n"
	"  const topRequests = most('requests'), topBusy = most('busy_processors');\n"
	"  const [when, count] = span == 'seconds' ? ['last 2 min', 120] : ['last hour', 60];\n"
	"  $('workers').replaceChildren(row(['worker', 'requests', when, 'processor', when, 'connections', "
	"'sent', 'memory',\n"
	"      'files', 'jobs']),\n"
	"    ...data.workers.map((w, i) => row([i, round(sum(w.requests)), spark(w[span].requests, count, topRequests, "
	"'requests of worker ' + i),\n"
	"      time(w.worker_cpu_seconds), spark(w[span].busy_processors, count, topBusy, 'processor use of worker ' + i), "
	"round(sum(w.connections)),\n"
	"      bytes(w.sent_bytes), bytes(w.memory_bytes), round(w.cache_files), round(w.jobs)])));\n"
	"};\n"
	"let last;\n"
	"const load = () => fetch('json', {cache: 'no-store', signal: AbortSignal.timeout(5000)}).then(answer => "
	"answer.json()).then(data => {\n"
	"  last = new Date();\n"
	"  show(data);\n"
	"}).catch(error => {\n"
	"  $('notes').title = '';\n"
	"  $('notes').replaceChildren(make('li', 'No answer' + (last ? ' since ' + last.toLocaleTimeString() : '') + ' (' + "
	"error.message + ').'));\n"
	"}).finally(() => setTimeout(load, document.hidden ? 10000 : 1000));\n"
	"load();\n"
	"</script>\n";
/* clang-format on */

/* Writes the curves in their order. */
static void put_curves(FILE *out) {
	const struct figure *f = figures;
	fputs("const curves = [", out);
	for (unsigned place = 1; f->name; place++) {
		for (f = figures; f->name && f->curve != place;) f++;
		if (f->name) fprintf(out, "['%s', '%s', '%s'],\n  ", f->name, f->title, f->unit);
	}
	fputs("];\n", out);
}

/* Writes the tables of values: each as its title and, for each value, what to show and when. */
static void put_tables(FILE *out) {
	static const char *const titles[] = {"Connections", "Answers", "Times of the last 10 s", "Files",
										 "Limits",      "Kernel",  "TLS handshakes"};
	fputs("const tables = [", out);
	for (unsigned n = 0; n < sizeof titles / sizeof *titles; n++) {
		enum value value[VALUES];
		const unsigned count = values_in(IN_PAGE, titles[n], value);
		fprintf(out, "['%s'", titles[n]);
		for (unsigned i = 0; i < count; i++) {
			const struct value_row *row = &value_row[value[i]];
			const struct place *p = &row->place[IN_PAGE];
			fprintf(out, ",\n  ['%s', '%s', '%s', '%s', '%s', %d]", p->words, row->family, row->label ? row->which : "",
					row->unit ? row->unit : "", p->part ? p->part : "", p->always);
		}
		fputs("], ", out);
	}
	fputs("];\n", out);
}

void view_page(FILE *out, const struct status_view *view) {
	(void)view;
	fputs(above, out);
	put_curves(out);
	put_tables(out);
	fputs(below, out);
}
