# Turns "gatling --help; gatling --help acme; gatling --help limits" into the completion of a shell: awk -v shell=bash|zsh|fish -f completion.awk

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
}

# A limit, which is a value of --limit.
/^  [a-z-]+=/ {
	sub(/=.*/, "=")
	limits = limits (limits == "" ? "" : " ") $1
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
	printf " \\\n\t'%s%s[%s]", text[i] ~ /repeatable/ || name[i] == "limit" ? "*" : "", word, escaped(text[i])
	if (value[i] != "") printf ":%s:%s", escaped(value[i]), name[i] == "limit" ? "(" limits ")" : "_files"
	printf "'"
}

END {
	if (shell == "bash") {
		for (i = 1; i <= count; i++) words = words " --" name[i]
		print "_gatling() {"
		printf "\tlocal words='%s'\n", substr(words, 2)
		printf "\ttest \"$3\" != --limit || words='%s'\n", limits
		print "\ttest \"$3\" != --limit || compopt -o nospace"
		print "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$2\"))"
		print "}"
		print "complete -o default -F _gatling gatling"
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
			printf "complete -c gatling -l %s%s%s%s -d '%s'\n", name[i], letter[i] == "" ? "" : " -s " letter[i], value[i] == "" ? "" : " -r", name[i] == "limit" ? " -f -a '" limits "'" : "", quoted(text[i])
}
