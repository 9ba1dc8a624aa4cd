package sqlstore

import (
	"fmt"
	"io/fs"
	"maps"
	"sync"
)

// Sections is the SQL of one dialect by section name. The files have the same names in every
// dialect, so that they can be read side by side.
type Sections map[string]string

// ParseFiles parses every .sql file of a room. The files are part of the program, so an unreadable
// one is a programming mistake.
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

// ParseSections splits the text of a .sql file at its "-- name:" lines, drops its comments, fills
// in the names, and labels each statement with its section's name: the server shows and logs the
// label.
func ParseSections(text string, names Names, quote string) Sections {
	cut := cutOf(text)
	s := make(Sections, len(cut))
	for _, c := range cut {
		// Labeled last: Fill would put a table's name into the label.
		s[c.Name] = LabelSection(c.Name, names.Fill(c.SQL, quote))
	}
	return s
}

// cuts are the sections of each text that was parsed, before names are filled in: the few files of
// the program, which every client of every namespace needs.
var cuts sync.Map

func cutOf(text string) []Section {
	if cut, ok := cuts.Load(text); ok {
		return cut.([]Section)
	}
	cut, _ := cuts.LoadOrStore(text, CutSections(text))
	return cut.([]Section)
}

// Texts has the sections of a dialect.
type Texts interface {
	// Text returns the SQL of a section with the names filled in. See the .sql files.
	Text(section string) string
}

// Text returns a section. A missing one is a programming mistake.
func (s Sections) Text(section string) string {
	sql, ok := s[section]
	if !ok {
		panic(fmt.Sprintf("dialect: no section %q", section))
	}
	return sql
}
