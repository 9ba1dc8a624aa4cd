package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// Sections is the SQL of one dialect by section name. The files have the same names in every
// dialect, so that they can be read side by side.
type Sections map[string]string

// cuts are the sections of each room, before names are filled in.
var cuts sync.Map

// ParseFiles parses every .sql file of a room, once for all clients. The files are part of the
// program, so an unreadable one is a programming mistake.
func ParseFiles(files fs.FS, names Names, quote string) Sections {
	cut, _ := cuts.LoadOrStore(files, sync.OnceValue(func() []Section { return cutFiles(files) }))
	return names.sections(cut.(func() []Section)(), quote)
}

func cutFiles(files fs.FS) (all []Section) {
	paths, err := fs.Glob(files, "*.sql")
	for _, path := range paths {
		text, failed := fs.ReadFile(files, path)
		err = errors.Join(err, failed)
		all = append(all, CutSections(string(text))...)
	}
	if err != nil || len(all) == 0 {
		panic(fmt.Sprintf("dialect: %d sections: %v", len(all), err))
	}
	return all
}

func (n Names) sections(cut []Section, quote string) Sections {
	s := make(Sections, len(cut))
	for _, c := range cut {
		// Labeled last: Fill would put a table's name into the label.
		s[c.Name] = LabelSection(c.Name, n.fill(c.SQL, quote, c.blanks))
	}
	return s
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
