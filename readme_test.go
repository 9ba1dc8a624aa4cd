package rowlock_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The README's program is examples/first, which the build compiles.
func TestReadmeProgramIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("examples/first/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(example), "package main")
	block := goBlock.FindStringSubmatch(string(readme))
	if block == nil || block[1] != "package main"+code {
		t.Error("README.md's first Go block is not examples/first/main.go without its comment")
	}
}

var remark = regexp.MustCompile(`\s+// .*`)

// The README's other lines of Go stand in an example too.
func TestReadmeCallsAreCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var compiled strings.Builder
	for _, dir := range []string{".", "forupdate", "optimistic", "once", "once/oncehttp", "paxosbridge", "paxosbridge/etcd"} {
		example, err := os.ReadFile(dir + "/example_test.go")
		if err != nil {
			t.Fatal(err)
		}
		compiled.WriteString(remark.ReplaceAllString(string(example), ""))
	}
	for _, block := range goBlock.FindAllStringSubmatch(string(readme), -1)[1:] {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(remark.ReplaceAllString(line, ""))
			if line != "" && !strings.Contains(compiled.String(), line+"\n") {
				t.Errorf("README.md: %q is in no example", line)
			}
		}
	}
}
