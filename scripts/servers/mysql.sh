# shellcheck shell=bash disable=SC2154 # cache, folder, no_sync, mounts: with-servers sets them
# The real MySQL. Debian has it in its unstable suite only, so it lives in a small Debian of its
# own, made once and kept between runs.

sid=$cache/mysql-sid
debian_keys=/usr/share/keyrings/debian-archive-keyring.gpg
as_mysql=(chroot "$sid" setpriv --reuid=mysql --regid=mysql --init-groups)

mysql_needs() {
	((EUID == 0)) || die "mysql: not root, as its chroot needs: set ROWLOCK_TEST_MYSQL to a server of your own"
	[[ -d $sid ]] || [[ -n $(command -v debootstrap) && -e $debian_keys ]] || missing+=(debootstrap gpgv debian-archive-keyring)
}

mysql_prepare() {
	have_mysql
	make_data "$1"
}

have_mysql() {
	[[ -d $sid ]] || fetch
	[[ -z $mounts ]] || mount_memory
	remove_forgotten "$sid/srv"
	wants_space "$sid/srv"
}

# mount_memory gives the chroot a place in memory, which only this run sees, as all else is there.
mount_memory() {
	(
		flock 9
		mountpoint --quiet "$sid/srv" || mount -t tmpfs -o mode=755 tmpfs "$sid/srv"
	) 9<"$cache"
}

# fetch is done by one run; others wait and find it done.
fetch() {
	mkdir -p "$cache"
	say "mysql: fetching it into $sid, once; this takes a minute or two"
	(
		flock 9
		[[ -d $sid ]] || bootstrap
	) 9<"$cache"
}

# bootstrap gives the folder its name only when it is whole: what an interrupted run leaves is never
# taken for good.
bootstrap() {
	local part=$sid.part mirror
	rm -rf --one-file-system -- "$part"
	mirror=$(debian_mirror)
	own_mounts debootstrap --keyring="$debian_keys" --variant=minbase --include=mysql-server sid "$part" ${mirror:+"$mirror"} \
		>"$folder/mysql/log" 2>&1 9<&- || give_up mysql "could not be fetched"
	rm -rf -- "$part"/var/cache/apt/archives/*.deb "$part"/var/lib/apt/lists/* "$part"/var/lib/mysql
	mv -T -- "$part" "$sid"
}

# debian_mirror prints where this machine's own packages come from, if it is a Debian.
debian_mirror() {
	# shellcheck disable=SC2016 # apt fills it in
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null |
		grep -m 1 '^https\?:' || true
}

# own_mounts keeps what debootstrap mounts (/proc in the new Debian) from outliving it, where that
# is allowed.
own_mounts() {
	if unshare --mount true 2>/dev/null; then
		unshare --mount "$@"
	else
		"$@"
	fi
}

# mysql_data is the data folder's place as seen from outside: no path leads out of the chroot to the
# temporary folder.
mysql_data() {
	echo "$sid/srv/${folder##*/}"
}

make_data() {
	local inside=/srv/${folder##*/}
	mysql_remove
	mkdir -p "$(mysql_data)/tmp"
	write_init_file "$(mysql_data)/init.sql"
	{
		chroot "$sid" chown mysql "$inside" "$inside/tmp"
		"${as_mysql[@]}" mysqld --no-defaults --initialize-insecure --datadir="$inside/data" --tmpdir="$inside/tmp"
	} >"$1/log" 2>&1 || give_up mysql "has no data folder"
}

# lock_data has no other run take the data for forgotten. They are this process's to lock: a server
# that a test kills would give its lock up.
lock_data() {
	local data
	for data in "$(mysql_data)" "$(group_data)"; do
		[[ ! -d $data ]] || lock_folder "$data"
	done
}

mysql_remove() {
	rm -rf --one-file-system -- "$(mysql_data)"
}

mysql_serve() {
	local inside=/srv/${folder##*/}
	exec setsid "${as_mysql[@]}" --pdeathsig="${stop_signal[mysql]}" mysqld --no-defaults \
		--datadir="$inside/data" --tmpdir="$inside/tmp" --socket="$inside/socket" --init-file="$inside/init.sql" \
		--bind-address=127.0.0.1 --port="$2" --skip-name-resolve --max-connections=300 --mysqlx=OFF \
		${no_sync:+--innodb-flush-method=nosync}
}

mysql_open() {
	local version
	version=$("${as_mysql[@]}" mysql --no-defaults --host=127.0.0.1 --port="$2" --user=root --skip-column-names --batch \
		--execute="select version()" rowlock_test) || return
	echo "${version%%-*}"
}

mysql_dsn() {
	innodb_dsn "$1"
}
