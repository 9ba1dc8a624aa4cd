# shellcheck shell=bash disable=SC2154 # folder, port, pid, preparing: with-servers has them
# Starting, awaiting and stopping the server processes.

# The data are thrown away, so no server is asked to close them well. PostgreSQL's way of stopping
# at once still gives back its shared memory.
declare -A stop_signal=([postgres]=QUIT [pgbouncer]=KILL [mariadb]=KILL [mysql]=KILL [group]=KILL [redis]=KILL [redis_default]=KILL
	[etcd1]=KILL [etcd2]=KILL [etcd3]=KILL)

# launch starts a server in a session of its own: Ctrl-C is for the command, which may want to tidy
# up with its database still there.
launch() {
	local name=$1
	(
		cd "$folder/$name" || exit
		"${name}_serve" "$folder/$name" "${port[$name]}"
	) >"$folder/$name/log" 2>&1 </dev/null &
	pid["$name"]=$!
}

# serve NAME USER command… becomes the server. It ends when its parent does: a run that is killed
# leaves none behind.
serve() {
	local name=$1 identity=()
	identify "$2"
	shift 2
	exec setsid setpriv "${identity[@]}" --pdeathsig="${stop_signal[$name]}" "$@"
}

# as_user USER command… runs a command and returns.
as_user() {
	local identity=()
	identify "$1"
	shift
	setpriv "${identity[@]}" "$@"
}

# identify makes the caller's identity the options of setpriv: database servers refuse to be root,
# and whoever is not root can only be what he is.
identify() {
	((EUID != 0)) || identity=(--reuid="$1" --regid="$(id -g "$1")" --init-groups)
}

# own USER folder… gives folders to the user a server runs as.
own() {
	((EUID != 0)) || chown "$@"
}

# reach has programs where every user may run them: a cache in root's home is closed to others.
reach() {
	cp -al "$1" "$2" 2>/dev/null || { rm -rf -- "$2" && cp -a "$1" "$2"; }
}

# await returns once the server has opened the test database.
await() {
	local name=$1 limit=$((SECONDS + 60)) version
	until version=$("${name}_open" "$folder/$name" "${port[$name]}" 2>/dev/null); do
		is_alive "${pid[$name]}" || give_up "$name" "ended instead of starting"
		((SECONDS < limit)) || give_up "$name" "does not answer"
		sleep 0.1
	done
	say "$name $version ready on port ${port[$name]}, $(seconds_since_start) s"
}

is_alive() {
	kill -0 "$1" 2>/dev/null
}

give_up() {
	show_log "$1"
	die "$1 $2"
}

show_log() {
	say "the end of the log of $1:"
	tail -n 40 "$folder/$1/log" >&2
}

# stop_all also ends what still prepares a server. A server a test has stopped (SIGSTOP) hears no
# signal but KILL until it continues.
stop_all() {
	local name job
	for job in "${preparing[@]}"; do
		end "$job" kill -s KILL -- "-$job"
	done
	for name in "${!pid[@]}"; do
		job=${pid[$name]}
		is_alive "$job" || { show_log "$name"; say "$name had ended before its time"; }
		end "$job" kill -s "${stop_signal[$name]}" "$job"
	done
}

# end PROCESS kill… is quiet, as bash would announce each death.
end() {
	local process=$1
	shift
	{
		"$@" || true
		kill -s CONT "$process" || true
		wait "$process" || true
	} 2>/dev/null
}

# signal_tree signals a process and everything it has started: a shell or `go test` that dies of a
# signal does not take its children along.
signal_tree() {
	local signal=$1 process=$2 children child
	children=$(cat "/proc/$process/task/"*/children 2>/dev/null) || true
	kill -s "$signal" "$process" 2>/dev/null || true
	for child in $children; do
		signal_tree "$signal" "$child"
	done
}
