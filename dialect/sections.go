package dialect

import (
	"fmt"
	"io/fs"
	"maps"
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

// ParseFiles parses every .sql file of a room. They are part of the program: one that cannot be read is a programming mistake.
func ParseFiles(files fs.FS, names Names, quote string) Sections {
	all := make(Sections)
	paths, err := fs.Glob(files, "*.sql")
	for _, path := range paths {
		var text []byte
		if text, err = fs.ReadFile(files, path); err != nil {
			break
		}
		maps.Copy(all, ParseSections(string(text), names, quote))
	}
	if err != nil || len(all) == 0 {
		panic(fmt.Sprintf("dialect: %d sections: %v", len(all), err))
	}
	return all
}

// ParseSections splits the text of a .sql file at its "-- name:" lines, drops comments and fills in the names.
func ParseSections(text string, names Names, quote string) Sections {
	marks := sectionMark.FindAllStringSubmatchIndex(text, -1)
	s := make(Sections, len(marks))
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		body := comment.ReplaceAllString(text[m[1]:end], "")
		s[text[m[2]:m[3]]] = names.Fill(strings.Trim(body, " \n;"), quote)
	}
	return s
}

// Text returns a section. A missing one is a programming mistake.
func (s Sections) Text(section string) string {
	sql, ok := s[section]
	if !ok {
		panic(fmt.Sprintf("dialect: no section %q", section))
	}
	return sql
}
