# shellcheck shell=bash disable=SC2154 # no_sync: with-servers sets it
# MariaDB, the version the machine's Debian has or that of ROWLOCK_MARIADB_BASE, and what MySQL has in common with it.

# The core packages are the programs alone: no service, no default data folder, no user of their
# own.
mariadb_needs() {
	type mariadbd mariadb-install-db mariadb >/dev/null 2>&1 || missing+=(mariadb-server-core mariadb-client-core)
	type mariadb-backup >/dev/null 2>&1 || missing+=(mariadb-backup) # a test restores a server with it
}

# A MariaDB that starts removes every temporary table it finds in its tmpdir: not one to share with
# another.
mariadb_prepare() {
	mkdir "$1/tmp"
	own nobody "$1" "$1/tmp"
	write_init_file "$1/init.sql"
	[[ -z ${ROWLOCK_MARIADB_BASE:-} ]] || reach "$ROWLOCK_MARIADB_BASE" "$1/base"
	mariadb_programs "$1"
	as_user nobody "${at}mariadb-install-db" --no-defaults "${based[@]}" --datadir="$1/data" --tmpdir="$1/tmp" --skip-name-resolve --skip-test-db \
		--auth-root-authentication-method=normal >"$1/log" 2>&1 || give_up mariadb "has no data folder"
}

# mariadb_programs sets at, where they are, and based, which tells them so.
mariadb_programs() {
	at='' based=()
	[[ ! -d $1/base ]] || at=$1/base/bin/ based=(--basedir="$1/base")
}

mariadb_serve() {
	mariadb_programs "$1"
	serve mariadb nobody "${at}mariadbd" --no-defaults "${based[@]}" --datadir="$1/data" --tmpdir="$1/tmp" --socket="$1/socket" --init-file="$1/init.sql" \
		--bind-address=127.0.0.1 --port="$2" --skip-name-resolve --max-connections=300 ${no_sync:+--innodb-flush-method=nosync}
}

mariadb_open() {
	local version
	version=$(mariadb --no-defaults --host=127.0.0.1 --port="$2" --user=root --skip-column-names --batch \
		--execute="select version()" rowlock_test) || return
	echo "${version%%-*}"
}

mariadb_dsn() {
	innodb_dsn "$1"
}

# write_init_file writes what the server runs before it takes connections. Neither server's root is
# by nature one who comes over TCP.
write_init_file() {
	cat >"$1" <<-'SQL'
		create database if not exists rowlock_test;
		create user if not exists root@'127.0.0.1';
		grant all on *.* to root@'127.0.0.1' with grant option;
	SQL
}

innodb_dsn() {
	echo "root@tcp(127.0.0.1:$1)/rowlock_test"
}
