# shellcheck shell=bash disable=SC2154 # folder: with-servers sets it
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
	[[ -z ${ROWLOCK_POSTGRES_BASE:-} ]] || reach "$ROWLOCK_POSTGRES_BASE" "$1/base"
	as_user postgres "$(postgres_programs)/initdb" --pgdata="$1/data" --username=postgres --auth=trust \
		--encoding=UTF8 --locale=C.UTF-8 --no-sync >"$1/log" 2>&1 || give_up postgres "has no data folder"
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
