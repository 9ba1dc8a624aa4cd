# shellcheck shell=bash disable=SC2154 # folder, no_sync: with-servers sets them
# PostgreSQL, the version the machine's Debian has, or that of ROWLOCK_POSTGRES_BASE.

# Its client asks a server of any version.
postgres_needs() {
	type psql >/dev/null 2>&1 && [[ -n $(postgres_programs) ]] || missing+=(postgresql postgresql-client)
}

# postgres_programs prints the folder of the newest server: Debian keeps it out of the PATH, by
# version.
postgres_programs() {
	local found
	[[ -z ${ROWLOCK_POSTGRES_BASE:-} ]] || { echo "$folder/postgres/base/bin"; return; }
	found=$(printf '%s\n' /usr/lib/postgresql/*/bin/postgres | sort -V | tail -n 1)
	[[ -x $found ]] || found=$(command -v postgres || true)
	echo "${found%/postgres}"
}

postgres_prepare() {
	own postgres "$1"
	[[ -z $no_sync ]] || postgres_in_memory "$1"
	[[ -z ${ROWLOCK_POSTGRES_BASE:-} ]] || reach "$ROWLOCK_POSTGRES_BASE" "$1/base"
	as_user postgres "$(postgres_programs)/initdb" --pgdata="$1/data" --username=postgres --auth=trust \
		--encoding=UTF8 --locale=C.UTF-8 --no-sync >"$1/log" 2>&1 || give_up postgres "has no data folder"
}

# postgres_in_memory keeps the data where fsync costs nothing, if there is room for them. A folder
# that a killed run has left is removed by a later one: none is believed to last two days.
postgres_in_memory() {
	local memory
	memory=$(postgres_memory)
	find /dev/shm -mindepth 1 -maxdepth 1 -name 'rowlock-servers-*' -mtime +1 -exec rm -rf --one-file-system -- {} + 2>/dev/null || true
	has_room || return 0
	rm -rf --one-file-system -- "$memory"
	mkdir -m 700 "$memory"
	own postgres "$memory"
	ln -s "$memory" "$1/data"
}

# has_room leaves 4 GB of memory to everything else: the data of a run take 2 GB.
has_room() {
	local space available
	[[ -w /dev/shm ]] || return
	space=$(df --output=avail --block-size=1M /dev/shm | tail -n 1)
	available=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
	((space >= 2048 && available >= 6144))
}

postgres_memory() {
	echo "/dev/shm/${folder##*/}"
}

postgres_remove() {
	rm -rf --one-file-system -- "$(postgres_memory)"
}

postgres_serve() {
	serve postgres postgres "$(postgres_programs)/postgres" -D "$1/data" -p "$2" \
		-c listen_addresses=127.0.0.1 -c unix_socket_directories="$1" \
		-c max_connections=300 -c max_prepared_transactions=10 -c shared_preload_libraries=pg_stat_statements \
		-c log_min_messages=warning -c log_line_prefix='%m [%p] '
}

# postgres_open needs no care for being repeated: psql goes on after a statement that fails, not
# without a connection.
postgres_open() {
	local version
	version=$(psql -XqAt "$(postgres_url "$2" postgres)" -c "create database rowlock_test" -c "show server_version") || return
	echo "${version%% *}"
}

postgres_dsn() {
	postgres_url "$1" rowlock_test
}

postgres_url() {
	echo "postgres://postgres@127.0.0.1:$1/$2?sslmode=disable"
}
