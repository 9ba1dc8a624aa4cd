# shellcheck shell=bash disable=SC2034,SC2154 # cache, here, port, pid: with-servers has them
# Three members of an etcd cluster, each a process of its own, in the version that tools/go.mod
# names. They write to the disk before they answer, as they do by default.

etcd_members=(etcd1 etcd2 etcd3)

# The program is built once for each version of what it is made of.
etcd_needs() {
	type go >/dev/null 2>&1 || die "etcd: no go to build it with: set ROWLOCK_TEST_ETCD to the endpoints of a cluster of your own"
}

etcd_program() {
	local sum
	sum=$(cat "$here/../tools/go.sum" "$here/../tools/go.mod" | sha256sum)
	echo "$cache/etcd-${sum:0:16}"
}

# etcd_build is done by one run; others wait and find it done.
etcd_build() {
	local program
	program=$(etcd_program)
	mkdir -p "$cache"
	(
		flock 9
		[[ ! -x $program ]] || exit 0
		say "etcd: building it into $cache, once"
		rm -f "$cache"/etcd-*
		cd "$here/.." && GOWORK=off go build -modfile="$here/../tools/go.mod" -o "$program.part" go.etcd.io/etcd/server/v3 && mv -T -- "$program.part" "$program"
	) 9<"$cache" >"$folder/$1/log" 2>&1 || give_up "$1" "could not be built"
}

# etcd_serve NAME FOLDER PORT becomes a member. A cache in root's placement is no place for another user
# to run something from.
etcd_serve() {
	local name=$1 member cluster=
	for member in "${etcd_members[@]}"; do
		cluster+=${cluster:+,}$member=http://127.0.0.1:${port[${member}_peer]}
	done
	serve "$name" root "$(etcd_program)" --name "$name" --data-dir "$2/data" --log-level warn ${no_sync:+--unsafe-no-fsync} \
		--listen-client-urls "http://127.0.0.1:$3" --advertise-client-urls "http://127.0.0.1:$3" \
		--listen-peer-urls "http://127.0.0.1:${port[${name}_peer]}" --initial-advertise-peer-urls "http://127.0.0.1:${port[${name}_peer]}" \
		--initial-cluster "$cluster" --initial-cluster-state new --initial-cluster-token "rowlock-${port[etcd1]}"
}

# etcd_open is true of a member that knows a leader.
etcd_open() {
	local answer version
	answer=$(etcd_ask "$2" /health) || return
	[[ $answer == *'"health":"true"'* ]] || return
	version=$(etcd_ask "$2" /version) || return
	[[ $version =~ etcdserver\":\"([0-9.]+)\" ]] && echo "${BASH_REMATCH[1]}"
}

etcd_ask() {
	local answer
	exec 3<>"/dev/tcp/127.0.0.1/$1" || return
	printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
	answer=$(timeout 5 cat <&3)
	exec 3<&-
	echo "$answer"
}

# etcd_tell adds a member to what is told of the cluster.
etcd_tell() {
	export ROWLOCK_TEST_ETCD=${ROWLOCK_TEST_ETCD:-}${ROWLOCK_TEST_ETCD:+,}127.0.0.1:${port[$1]}
	export ROWLOCK_TEST_ETCD_PID=${ROWLOCK_TEST_ETCD_PID:-}${ROWLOCK_TEST_ETCD_PID:+,}${pid[$1]}
	export ROWLOCK_TEST_ETCD_LOG=${ROWLOCK_TEST_ETCD_LOG:-}${ROWLOCK_TEST_ETCD_LOG:+,}$folder/$1/log
	ROWLOCK_TEST_ETCD_PROGRAM=$(etcd_program)
	export ROWLOCK_TEST_ETCD_PROGRAM
}

# Each member is a server to those who start and stop them.
for member in "${etcd_members[@]}"; do
	eval "
		${member}_needs() { etcd_needs; }
		${member}_prepare() { etcd_build $member; }
		${member}_serve() { etcd_serve $member \"\$@\"; }
		${member}_open() { etcd_open \"\$@\"; }
		${member}_tell() { etcd_tell $member; }
	"
	places+=("${member}_peer")
done
unset member
