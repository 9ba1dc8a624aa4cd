# shellcheck shell=bash disable=SC2154,SC2034 # places, port: with-servers has them
# The temporary folder of one run, which is also its claim on a few ports.

# keep_in_memory has the folder be where fsync costs nothing, if there is room for it. It begins
# with-servers anew with mounts of its own, which nobody has to remove: MySQL's chroot gets one.
keep_in_memory() {
	mounts=${ROWLOCK_OWN_MOUNTS:-}
	unset ROWLOCK_OWN_MOUNTS
	[[ -n $mounts || ! -d /dev/shm ]] || remove_forgotten /dev/shm # it is room
	[[ -n $mounts ]] || has_room || return 0
	memory=/dev/shm
	[[ -z $mounts ]] && unshare --mount true 2>/dev/null || return 0
	ROWLOCK_OWN_MOUNTS=yes exec unshare --mount "$0" "$@"
}

# has_room leaves 4 GB of memory to everything else: what a run writes takes less than 8.
has_room() {
	local available
	[[ -w /dev/shm && ,$(findmnt --noheadings --output OPTIONS /dev/shm), != *,noexec,* ]] || return
	available=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
	(($(megabytes_free /dev/shm) >= 8192 && available >= 12288))
}

megabytes_free() {
	df --output=avail --block-size=1M "$1" | tail -n 1
}

# remove_forgotten FOLDER removes what runs have left there that were killed: nobody has it locked.
# What a run has just begun to make is not locked yet.
remove_forgotten() {
	find "$1" -mindepth 1 -maxdepth 1 -name 'rowlock-servers-*' -mmin +10 \
		-exec flock --nonblock {} rm -rf --one-file-system -- {} \; 2>/dev/null || true
}

# lock_folder has nobody else take a folder for forgotten, as long as any process lives that is
# begun from here.
lock_folder() {
	local lock
	exec {lock}<"$1"
	flock "$lock"
}

# wants_space says before it begins what a server says of a full disk late, and in words of its own.
wants_space() {
	local space
	space=$(($(megabytes_free "$1")))
	((space >= 1024)) || die "$1 has $space MB left, and servers may write 1024: remove something there (go clean -cache removes what Go has compiled)"
}

# make_folder sets folder and port. Ports are free for nobody but the one who makes the folder named
# after the first of them, and mkdir lets only one do that: several runs at once cannot choose the
# same. The range lies below the one the kernel takes the ports of outgoing connections from.
make_folder() {
	local first parent
	parent=$(realpath -e "${memory:-${TMPDIR:-/tmp}}")
	[[ -w $parent ]] || die "cannot write to $parent"
	[[ -n $memory ]] || remove_forgotten "$parent" # from memory it has been removed
	wants_space "$parent"
	for ((;;)); do
		first=$((20000 + RANDOM % (12000 / ${#places[@]}) * ${#places[@]}))
		mkdir "$parent/rowlock-servers-$first" 2>/dev/null || continue
		folder=$parent/rowlock-servers-$first
		are_free "$first" && break
		rmdir "$folder"
	done
	chmod 755 "$folder"
	lock_folder "$folder"
}

are_free() {
	local next=$1 name
	for name in "${places[@]}"; do
		! (: <>"/dev/tcp/127.0.0.1/$next") 2>/dev/null || return 1
		port["$name"]=$next
		next=$((next + 1))
	done
}
