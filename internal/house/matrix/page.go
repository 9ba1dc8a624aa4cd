package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	page = "docs/compatibility.md"
	data = "docs/compatibility.json"
	// The table stands between these lines of the page.
	from  = "<!-- matrix: make matrix writes this table -->\n"
	until = "<!-- end of matrix -->\n"
)

// table is what the run has found, as the data file has it.
type table struct {
	Suites map[string]string `json:"suites"` // packages, by the heads of their columns
	Rows   []row             `json:"rows"`
}

// row is one version of one product.
type row struct {
	Name    string         `json:"name"`
	Version string         `json:"version,omitempty"` // as the server says
	Passed  map[string]int `json:"passed,omitempty"`  // tests and subtests, by suite
	Failed  []string       `json:"failed,omitempty"`
	Missing string         `json:"missing,omitempty"` // why it was not run
}

func (r *row) failures() (errs []error) {
	for _, f := range r.Failed {
		errs = append(errs, errors.New(r.Name+": "+f))
	}
	return errs
}

func read(root string) (*table, error) {
	text, err := os.ReadFile(place(root, data))
	if errors.Is(err, os.ErrNotExist) {
		return new(table), nil
	}
	if err != nil {
		return nil, err
	}
	t := new(table)
	return t, json.Unmarshal(text, t)
}

// put replaces rows of the same names.
func (t *table) put(rows []row) {
	for _, r := range rows {
		t.Rows = slices.DeleteFunc(t.Rows, func(old row) bool { return old.Name == r.Name })
		t.Rows = append(t.Rows, r)
	}
}

// order sorts the rows as a reader looks for them, and drops those of versions that are no more run.
func (t *table) order() {
	t.Suites = make(map[string]string)
	for _, s := range suites {
		t.Suites[s.what] = s.pkg
	}
	names := names()
	t.put(missing)
	t.Rows = slices.DeleteFunc(t.Rows, func(r row) bool { return !slices.Contains(names, r.Name) })
	slices.SortFunc(t.Rows, func(a, b row) int {
		return slices.Index(names, a.Name) - slices.Index(names, b.Name)
	})
}

// names are those of all rows: each product's versions stand together.
func names() (all []string) {
	for _, s := range starts {
		for _, k := range s.rows {
			all = append(all, k.name)
		}
	}
	for _, r := range missing {
		all = append(all, r.Name)
	}
	product := func(name string) string { return strings.TrimRight(name, "0123456789.") }
	slices.SortStableFunc(all, func(a, b string) int {
		return slices.Index(products, product(a)) - slices.Index(products, product(b))
	})
	return all
}

var products = []string{
	"PostgreSQL ", "PgBouncer, transaction mode", "MySQL ", "MariaDB ", "SQLite, modernc.org/sqlite",
}

func (t *table) write(root string) error {
	t.order()
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(place(root, data), append(text, '\n'), 0o644); err != nil {
		return err
	}
	old, err := os.ReadFile(place(root, page))
	if err != nil {
		return err
	}
	updated, err := t.in(old)
	if err != nil {
		return err
	}
	return os.WriteFile(place(root, page), updated, 0o644)
}

// in returns the page with this table.
func (t *table) in(text []byte) ([]byte, error) {
	before, rest, found := bytes.Cut(text, []byte(from))
	_, after, ends := bytes.Cut(rest, []byte(until))
	if !found || !ends {
		return nil, fmt.Errorf("%s has not the lines %q and %q", page, from, until)
	}
	return slices.Concat(before, []byte(from+t.markdown()+until), after), nil
}

func (t *table) markdown() string {
	var b strings.Builder
	b.WriteString("| server | version |")
	for _, s := range suites {
		b.WriteString(" " + s.what + " |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(suites)) + "\n")
	for _, r := range t.Rows {
		b.WriteString(r.markdown() + "\n")
	}
	return b.String()
}

func (r *row) markdown() string {
	cells := []string{r.Name, r.Version}
	if r.Missing != "" {
		cells[1] = "not to be had"
	}
	for _, s := range suites {
		cell := "–"
		if n := r.Passed[s.what]; n > 0 {
			cell = strconv.Itoa(n)
		}
		if slices.ContainsFunc(r.Failed, func(f string) bool { return strings.HasPrefix(f, s.pkg) }) {
			cell += " FAILED"
		}
		cells = append(cells, cell)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}
