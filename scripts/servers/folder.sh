# shellcheck shell=bash disable=SC2154,SC2034 # places, port: with-servers has them
# The temporary folder of one run, which is also its claim on a few ports.

# make_folder sets folder and port. Ports are free for nobody but the one who makes the folder named
# after the first of them, and mkdir lets only one do that: several runs at once cannot choose the
# same. The range lies below the one the kernel takes the ports of outgoing connections from.
make_folder() {
	local first parent
	parent=$(realpath -e "${TMPDIR:-/tmp}")
	[[ -w $parent ]] || die "cannot write to $parent"
	for ((;;)); do
		first=$((20000 + RANDOM % (12000 / ${#places[@]}) * ${#places[@]}))
		mkdir "$parent/rowlock-servers-$first" 2>/dev/null || continue
		folder=$parent/rowlock-servers-$first
		are_free "$first" && break
		rmdir "$folder"
	done
	chmod 755 "$folder"
}

are_free() {
	local next=$1 name
	for name in "${places[@]}"; do
		! (: <>"/dev/tcp/127.0.0.1/$next") 2>/dev/null || return 1
		port["$name"]=$next
		next=$((next + 1))
	done
}
