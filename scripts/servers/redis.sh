# shellcheck shell=bash
# Two Redis servers. redis, for tests and comparison, writes each command to the disk before it
# answers, as the databases do; redis_default, for comparison alone, is as Redis comes, which keeps
# what it is told in memory and saves it now and then.

redis_needs() {
	type redis-server redis-cli >/dev/null 2>&1 || missing+=(redis-server redis-tools)
}

redis_prepare() {
	own redis "$1"
}

redis_serve() {
	redis_with redis "$@" --appendonly yes --appendfsync always
}

redis_open() {
	local version
	version=$(redis-cli -h 127.0.0.1 -p "$2" info server) || return
	version=${version#*redis_version:}
	echo "${version%%[[:space:]]*}"
}

redis_dsn() {
	echo "redis://127.0.0.1:$1/0"
}

redis_default_needs() { redis_needs; }
redis_default_prepare() { redis_prepare "$@"; }
redis_default_serve() { redis_with redis_default "$@"; }
redis_default_open() { redis_open "$@"; }
redis_default_dsn() { redis_dsn "$@"; }

# redis_with NAME FOLDER PORT option…
redis_with() {
	local name=$1 folder=$2 port=$3
	shift 3
	serve "$name" redis redis-server --bind 127.0.0.1 --port "$port" --dir "$folder" "$@"
}
