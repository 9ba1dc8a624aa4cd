package dialect

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Sections is the SQL of one dialect by section name. The files carry the same names in every dialect, so that they can be
// read side by side.
type Sections map[string]string

var (
	sectionMark = regexp.MustCompile(`(?m)^-- name: ([a-z-]+)\n`)
	comment     = regexp.MustCompile(`(?m)^\s*--.*\n|\s--\s.*$`)
)

// ParseSections splits the .sql files at their "-- name:" lines, drops comments and fills in the names. The files are part of the
// program: one that cannot be read is a programming mistake.
func ParseSections(files fs.FS, names Names, quote string) Sections {
	s := make(Sections)
	paths, err := fs.Glob(files, "*.sql")
	for _, path := range paths {
		var text []byte
		text, err = fs.ReadFile(files, path)
		if err != nil {
			break
		}
		s.parse(string(text), names, quote)
	}
	if err != nil || len(s) == 0 {
		panic(fmt.Sprintf("dialect: %d sections: %v", len(s), err))
	}
	return s
}

func (s Sections) parse(text string, names Names, quote string) {
	marks := sectionMark.FindAllStringSubmatchIndex(text, -1)
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		body := comment.ReplaceAllString(text[m[1]:end], "")
		s[text[m[2]:m[3]]] = names.Fill(strings.Trim(body, " \n;"), quote)
	}
}

// Text returns a section. A missing one is a programming mistake.
func (s Sections) Text(section string) string {
	sql, ok := s[section]
	if !ok {
		panic(fmt.Sprintf("dialect: no section %q", section))
	}
	return sql
}
