# shellcheck shell=bash disable=SC2154 # cache, folder, sid, as_mysql, port: with-servers and mysql.sh have them
# Three MySQL servers as one group: MySQL Group Replication with a single primary. They are the
# MySQL of mysql.sh.

group_needs() { mysql_needs; }

# group_data is the folder of all three, in the chroot.
group_data() {
	echo "$(mysql_data).group"
}

# group_prepare makes one data folder and two copies: to copy takes a twentieth of the time. What
# makes a server itself is left out.
group_prepare() {
	local data inside n
	mkdir -p "$folder/mysql" # where fetch writes its log
	have_mysql
	group_remove
	data=$(group_data)
	inside=/srv/${data##*/}
	mkdir -p "$data"/tmp{1,2,3}
	write_group_init_file "$data/init.sql"
	{
		chroot "$sid" chown mysql "$inside" "$inside"/tmp{1,2,3}
		"${as_mysql[@]}" mysqld --no-defaults --initialize-insecure --datadir="$inside/data1" --tmpdir="$inside/tmp1" \
			--innodb-redo-log-capacity=8M --innodb-buffer-pool-size=32M
		rm -f "$data/data1/auto.cnf"
		for n in 2 3; do
			cp -a "$data/data1" "$data/data$n"
		done
	} >"$1/log" 2>&1 || give_up group "has no data folders"
}

# Each member makes the user for itself, before there is a group: a statement that was logged would
# be one the others do not have.
write_group_init_file() {
	cat >"$1" <<-'SQL'
		set session sql_log_bin = 0;
		create user if not exists root@'127.0.0.1';
		grant all on *.* to root@'127.0.0.1' with grant option;
	SQL
}

group_remove() {
	rm -rf --one-file-system -- "$(group_data)"
}

# group_serve becomes what starts the members, makes them a group, and starts again whoever ends.
group_serve() {
	local data
	data=$(group_data)
	exec setsid setpriv --pdeathsig="${stop_signal[group]}" "$here/servers/group-members" "$sid" "/srv/${data##*/}" "$2" "${port[group_2]}" "${port[group_3]}"
}

# group_open is true once every member is one, and the first has the database.
group_open() {
	local answer
	answer=$("${as_mysql[@]}" mysql --no-defaults --host=127.0.0.1 --port="$2" --user=root --skip-column-names --batch --execute="select version(),
		(select count(*) from performance_schema.replication_group_members where member_state = 'ONLINE')" rowlock_test) || return
	[[ $answer == *$'\t3' ]] || return
	echo "${answer%%-*}"
}

group_dsn() {
	echo "$(innodb_dsn "$1") $(innodb_dsn "${port[group_2]}") $(innodb_dsn "${port[group_3]}")"
}
