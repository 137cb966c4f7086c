# Turns "gatling --help" into the completion of a shell: awk -v shell=bash|zsh|fish -f completion.awk

# An option: its letter or "", its name, the word for its value or "", and its description.
/^  (-[A-Za-z], |    )--[a-z]/ {
	line = $0
	letter[++count] = line ~ /^  -/ ? substr(line, 4, 1) : ""
	sub(/^ +(-[A-Za-z], )?--/, "", line)
	name[count] = line
	sub(/[^a-z-].*/, "", name[count])
	sub(/^[a-z-]+/, "", line)
	value[count] = line ~ /^ [A-Za-z]/ ? substr(line, 2) : ""
	sub(/ .*/, "", value[count])
	sub(/^( [^ ]+)? */, "", line)
	text[count] = line
	next
}

# More of a description.
count && /^                    / {
	sub(/^ +/, "")
	text[count] = text[count] (text[count] == "" ? "" : " ") $0
}

function quoted(s) {
	gsub(/'/, "'\\''", s)
	return s
}

function escaped(s) {
	gsub(/:|\[|\]/, "\\\\&", s)
	return quoted(s)
}

function zsh_option(word, i) {
	printf " \\\n\t'%s%s[%s]%s'", text[i] ~ /repeated/ ? "*" : "", word, escaped(text[i]), value[i] == "" ? "" : ":" escaped(value[i]) ":_files"
}

END {
	if (shell == "bash") {
		words = ""
		for (i = 1; i <= count; i++) words = words " --" name[i]
		printf "complete -o default -W '%s' gatling\n", substr(words, 2)
	}
	if (shell == "zsh") {
		printf "#compdef gatling\n_arguments -s"
		for (i = 1; i <= count; i++) {
			zsh_option("--" name[i], i)
			if (letter[i] != "") zsh_option("-" letter[i], i)
		}
		print " \\\n\t'*:directory:_files -/'"
	}
	if (shell == "fish")
		for (i = 1; i <= count; i++)
			printf "complete -c gatling -l %s%s%s -d '%s'\n", name[i], letter[i] == "" ? "" : " -s " letter[i], value[i] == "" ? "" : " -r", quoted(text[i])
}
