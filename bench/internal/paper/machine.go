package paper

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine says what it all ran on, in a few words each. It names no host.
func Machine() []string {
	return []string{
		fmt.Sprintf("%d cores (%s), %s memory", runtime.NumCPU(), lineOf("/proc/cpuinfo", "model name"), memory()),
		fmt.Sprintf("%s %s, kernel %s", runtime.GOOS, runtime.GOARCH, kernel()),
		fmt.Sprintf("%s, GOMAXPROCS %d", runtime.Version(), runtime.GOMAXPROCS(0)),
	}
}

// Load is the average number of threads that have run or waited for a disk in the last minute.
func Load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(b), " ")
	return load + fmt.Sprintf(" threads on %d cores", runtime.NumCPU())
}

func memory() string {
	var kB int64
	if _, err := fmt.Sscan(lineOf("/proc/meminfo", "MemTotal"), &kB); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f GiB", float64(kB)/(1<<20))
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

// lineOf is the value of the first line of that name.
func lineOf(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// libraries are those whose speed is measured, by module.
var libraries = []string{
	"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql", "modernc.org/sqlite", "github.com/bsm/redislock", "github.com/go-redsync/redsync/v4",
	"github.com/redis/go-redis/v9", "github.com/redis/rueidis", "go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3",
}

// Versions are those of the libraries, as this program was built with them.
func Versions() (all []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	known := make(map[string]string)
	for _, m := range info.Deps {
		known[m.Path] = m.Version
	}
	for _, path := range libraries {
		all = append(all, path+" "+known[path])
	}
	return all
}
