#!/bin/sh
# Makes a workspace to measure with:  generate.sh DIRECTORY [PACKAGES [LEVELS [FILES]]]
# PACKAGES (1090) packages in LEVELS (10) levels, each but those of the first depending on three of
# the level below, with FILES (10) source files and the targets build, test and lint; described for
# qk and nx (nx.json, project.json), for turbo (turbo.json, scripts of package.json) and as a plain
# Makefile with stamp files (plain.mk); committed to Git.
set -eu

dir=$1 packages=${2:-1090} levels=${3:-10} files=${4:-10}
mkdir -p "$dir"
cd "$dir"
awk -v packages="$packages" -v levels="$levels" -v files="$files" '
function put(file, text) { printf "%s", text >file; close(file) }
function name(n) { return "p" n }
BEGIN {
	per = int(packages / levels)
	for (n = 0; n < packages; n++)
		dirs = dirs " packages/" name(n) "/src"
	system("mkdir -p" dirs)
	for (n = 0; n < packages; n++) {
		p = name(n)
		root = "packages/" p
		level = int(n / per)
		deps = ""
		stamps = ""
		for (k = 0; level && k < 3; k++) {
			to = name((level - 1) * per + (n * 7 + k * 31) % per)
			if (index(deps, "\"" to "\""))
				continue
			deps = deps (deps == "" ? "" : ", ") "\"" to "\": \"*\""
			stamps = stamps " packages/" to "/dist/out.txt"
		}
		for (k = 0; k < files; k++)
			put(root "/src/f" k ".txt", p " file " k "\n")
		put(root "/package.json", "{\n\t\"name\": \"" p "\",\n\t\"version\": \"1.0.0\",\n" \
			"\t\"scripts\": {\n\t\t\"build\": \"mkdir -p dist && cat src/* >dist/out.txt\",\n" \
			"\t\t\"test\": \"cat src/* | cksum >test.out\",\n" \
			"\t\t\"lint\": \"cat src/* | wc -l >lint.out\"\n\t},\n" \
			"\t\"dependencies\": {" deps "}\n}\n")
		put(root "/project.json", "{\n\t\"name\": \"" p "\",\n\t\"targets\": {\n" \
			"\t\t\"build\": { \"command\": \"mkdir -p dist && cat src/* >dist/out.txt\", \"options\": { \"cwd\": \"{projectRoot}\" } },\n" \
			"\t\t\"test\": { \"command\": \"cat src/* | cksum >test.out\", \"options\": { \"cwd\": \"{projectRoot}\" } },\n" \
			"\t\t\"lint\": { \"command\": \"cat src/* | wc -l >lint.out\", \"options\": { \"cwd\": \"{projectRoot}\" } }\n" \
			"\t}\n}\n")
		mk = mk root "/dist/out.txt: $(wildcard " root "/src/*)" stamps \
			"\n\t@cd " root " && mkdir -p dist && cat src/* >dist/out.txt\n"
		all = all " " root "/dist/out.txt"
	}
	put("plain.mk", "build:" all "\n" mk)
	put("package.json", "{\n\t\"name\": \"bench\",\n\t\"private\": true,\n\t\"packageManager\": \"npm@10.0.0\",\n\t\"workspaces\": [\"packages/*\"]\n}\n")
	put("nx.json", "{\n\t\"analytics\": false,\n\t\"targetDefaults\": {\n" \
		"\t\t\"build\": { \"cache\": true, \"dependsOn\": [\"^build\"], \"inputs\": [\"{projectRoot}/src/**/*\"], \"outputs\": [\"{projectRoot}/dist\"] },\n" \
		"\t\t\"test\": { \"cache\": true, \"inputs\": [\"{projectRoot}/src/**/*\"], \"outputs\": [\"{projectRoot}/test.out\"] },\n" \
		"\t\t\"lint\": { \"cache\": true, \"inputs\": [\"{projectRoot}/src/**/*\"], \"outputs\": [\"{projectRoot}/lint.out\"] }\n\t}\n}\n")
	put("turbo.json", "{\n\t\"tasks\": {\n" \
		"\t\t\"build\": { \"dependsOn\": [\"^build\"], \"inputs\": [\"src/**\"], \"outputs\": [\"dist/**\"] },\n" \
		"\t\t\"test\": { \"inputs\": [\"src/**\"], \"outputs\": [\"test.out\"] },\n" \
		"\t\t\"lint\": { \"inputs\": [\"src/**\"], \"outputs\": [\"lint.out\"] }\n\t}\n}\n")
	put(".gitignore", "node_modules\ndist\n*.out\n.qk\n.nx\n.turbo\n")
	put("Makefile", "include qk.mk\n")
}'
git init -q .
git add .
git -c user.name=bench -c user.email=bench@localhost commit -qm 'Generated workspace'
