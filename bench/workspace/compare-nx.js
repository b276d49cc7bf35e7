#!/usr/bin/env node
// Compares what qk and Nx make of one workspace:  compare-nx.js DIRECTORY [QK]
// Projects with their roots, targets with their executors and merged fields, dependencies between
// projects and between tasks. Nx is the workspace's own (node_modules/.bin/nx, or $NX), QK the qk
// program. A line for each difference, counts at the end; ends with 1 if there is any that qk does not
// account for: what plugins of nx.json infer, and imports in sources, qk does not read (qk doctor
// names these plugins), so what only Nx has is counted apart where nx.json names a plugin.
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

if (process.argv.length < 3) {
	console.error('usage: compare-nx.js DIRECTORY [QK]');
	process.exit(2);
}
const dir = path.resolve(process.argv[2]);
const qkProgram = path.resolve(process.argv[3] || path.join(__dirname, '../../build/bin/qk'));
const nxProgram = process.env.NX || path.join(dir, 'node_modules/.bin/nx');
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'compare-nx.'));
const env = { ...process.env, NX_DAEMON: 'false', NX_NO_CLOUD: 'true', NX_TUI: 'false', CI: '1' };

function run(program, args) {
	return execFileSync(program, args, { cwd: dir, env, encoding: 'utf8', maxBuffer: 1 << 30,
		stdio: ['ignore', 'pipe', 'pipe'] });
}

function nxGraph(args) {
	const file = path.join(tmp, 'graph.json');

	run(nxProgram, [...args, file]);
	return JSON.parse(fs.readFileSync(file, 'utf8'));
}

const qk = (...args) => JSON.parse(run(qkProgram, [...args, '--json']));

let differences = 0;
const counts = {};

function count(what, both, onlyNx, onlyQk) {
	counts[what] = counts[what] || { both: 0, 'only nx': 0, 'only qk': 0 };
	counts[what].both += both;
	counts[what]['only nx'] += onlyNx.length;
	counts[what]['only qk'] += onlyQk.length;
}

// `forgiven`: what only Nx has may come from where qk does not look
function sets(what, nx, ours, forgiven) {
	const onlyNx = [...nx].filter((x) => !ours.has(x));
	const onlyQk = [...ours].filter((x) => !nx.has(x));

	count(what, nx.size - onlyNx.length, onlyNx, onlyQk);
	for (const x of onlyNx)
		console.log(`${what}: only nx: ${x}${forgiven ? ' (inferred?)' : ''}`);
	for (const x of onlyQk)
		console.log(`${what}: only qk: ${x}`);
	differences += onlyQk.length + (forgiven ? 0 : onlyNx.length);
}

// As text that is the same for equal values; the order of keys does not count.
function text(v) {
	if (Array.isArray(v))
		return '[' + v.map(text).join(',') + ']';
	if (v && typeof v === 'object')
		return '{' + Object.keys(v).sort().map((k) => k + ':' + text(v[k])).join(',') + '}';
	return JSON.stringify(v === undefined ? null : v);
}

const fields = ['dependsOn', 'inputs', 'outputs', 'cache', 'options', 'configurations',
	'defaultConfiguration', 'continuous', 'parallelism'];
const unsaid = { parallelism: true, configurations: {}, options: {}, cache: false, continuous: false };

// Nx fills in tokens as it merges, qk when the task is made.
function filled(v, project) {
	if (typeof v === 'string')
		return v.replaceAll('{projectRoot}', project.data.root)
			.replaceAll(/\{workspaceRoot\}\/?/g, '').replaceAll('{projectName}', project.name);
	if (!v || typeof v !== 'object')
		return v;
	if (Array.isArray(v))
		return v.map((x) => filled(x, project));
	return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, filled(x, project)])
		.filter(([k, x]) => k !== 'cwd' || !['', '.'].includes(x)));
}

// As text; a target that has only dependsOn is an nx:noop, in Nx by merging, in qk by how it is run.
function field(target, name, project) {
	const value = target[name] === undefined && name in unsaid ? unsaid[name] : target[name];

	if (name === 'executor' && !value)
		return '"nx:noop"';
	return text(name === 'options' || name === 'configurations' ? filled(value, project) : value);
}

const graph = nxGraph(['graph', '--file']).graph || nxGraph(['graph', '--file']);
const nodes = Object.values(graph.nodes);
const plugins = qk('doctor').findings.map((f) => /: plugin "(.*?)"/.exec(f.text))
	.filter(Boolean).map((m) => m[1]);
const inferred = plugins.length > 0;

const projects = new Map(qk('show', 'projects').map((p) => [p.name, p]));
sets('project', new Set(nodes.map((n) => `${n.name} at ${n.data.root}`)),
	new Set([...projects.values()].map((p) => `${p.name} at ${p.root}`)), inferred);

const common = nodes.filter((n) => projects.has(n.name));
const shown = new Map(common.map((n) => [n.name, qk('show', 'project', n.name)]));
// nx-release-publish is what Nx adds by itself where @nx/js is installed: its release command is no task.
const nxTargets = new Set(), qkTargets = new Set(), nxDeps = new Set(), qkDeps = new Set();
for (const n of common) {
	const ours = shown.get(n.name);

	for (const name of Object.keys(n.data.targets || {}).filter((t) => t !== 'nx-release-publish'))
		nxTargets.add(`${n.name}:${name}`);
	for (const name of Object.keys(ours.targets))
		qkTargets.add(`${n.name}:${name}`);
	for (const d of graph.dependencies[n.name] || [])
		if (projects.has(d.target) && d.target !== n.name)
			nxDeps.add(`${n.name} -> ${d.target}`);
	for (const d of ours.dependencies)
		qkDeps.add(`${n.name} -> ${d.project}`);
}
sets('target', nxTargets, qkTargets, inferred);
sets('project dependency', nxDeps, qkDeps, true);

let merged = 0;
for (const n of common)
	for (const [name, theirs] of Object.entries(n.data.targets || {})) {
		const ours = shown.get(n.name).targets[name];

		for (const f of ours ? ['executor', ...fields] : []) {
			if (field(theirs, f, n) === field(ours, f, n)) {
				merged++;
				continue;
			}
			console.log(`field: ${n.name}:${name} ${f}: nx ${field(theirs, f, n)}, qk ${field(ours, f, n)}`);
			count('field', 0, [f], [f]);
			differences += inferred ? 0 : 1;
		}
	}
count('field', merged, [], []);

const names = [...new Set([...qkTargets].map((t) => t.slice(t.indexOf(':', projectOf(t).length) + 1)))];
function projectOf(id) {
	let best = '';

	for (const p of projects.keys())
		if (id.startsWith(p + ':') && p.length > best.length)
			best = p;
	return best;
}
const tasks = nxGraph(['run-many', '-t', names.join(','), '--graph']).tasks;
const nxEdges = new Set(), qkEdges = new Set();
for (const id of Object.keys(tasks.tasks)) {
	if (!qkTargets.has(id))
		continue;
	const ours = qk('show', 'target', id);

	for (const to of [...(tasks.dependencies[id] || []), ...((tasks.continuousDependencies || {})[id] || [])])
		nxEdges.add(`${id} -> ${to}`);
	for (const to of [...ours.dependsOn, ...ours.continuous])
		qkEdges.add(`${id} -> ${to}`);
}
sets('task dependency', nxEdges, qkEdges, inferred);

fs.rmSync(tmp, { recursive: true });
for (const [what, c] of Object.entries(counts))
	console.log(`${what}: ${Object.entries(c).map(([k, v]) => `${v} ${k}`).join(', ')}`);
if (inferred)
	console.log(`plugins that qk does not run: ${plugins.join(', ')}`);
process.exit(differences ? 1 : 0);
