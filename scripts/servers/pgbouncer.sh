# shellcheck shell=bash disable=SC2154 # port, servers: with-servers has them
# PgBouncer in transaction mode, before the PostgreSQL of the same run.

pgbouncer_needs() {
	type pgbouncer >/dev/null 2>&1 || missing+=(pgbouncer)
}

# Four connections to the server are few enough to change hands all the time. What a client has left
# in one is not reset. rowlock_session is the same database in session mode, and rowlock_roomy with
# connections for clients that vanish in a transaction.
pgbouncer_prepare() {
	cat >"$1/ini" <<-INI
		[databases]
		rowlock_session = host=127.0.0.1 port=${port[postgres]} user=postgres dbname=rowlock_test pool_mode=session pool_size=20
		rowlock_roomy = host=127.0.0.1 port=${port[postgres]} user=postgres dbname=rowlock_test pool_size=30
		* = host=127.0.0.1 port=${port[postgres]} user=postgres
		[pgbouncer]
		listen_addr = 127.0.0.1
		listen_port = ${port[pgbouncer]}
		unix_socket_dir =
		auth_type = any
		pool_mode = transaction
		default_pool_size = 4
		server_reset_query_always = 0
		max_client_conn = 500
		log_connections = 0
		log_disconnections = 0
	INI
}

pgbouncer_serve() {
	serve pgbouncer postgres pgbouncer "$1/ini"
}

# pgbouncer_open is asked once PostgreSQL is open, and would keep an error of before that for a
# while.
pgbouncer_open() {
	local version
	psql -XqAt "$(postgres_url "$2" rowlock_test)" -c "select 1" >/dev/null || return
	version=$(pgbouncer --version) || return
	version=${version%%$'\n'*}
	echo "${version##* }"
}

pgbouncer_dsn() {
	echo "$(postgres_url "$1" rowlock_test)&default_query_exec_mode=exec"
}
