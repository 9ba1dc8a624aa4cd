package sqlstore

import (
	"os"
	"slices"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// Opened is one opening of tables, for a database that cannot tell its own histories apart:
// nothing in a file shows that it was copied back. While a file is open no process may copy another
// over it, so that all that this process opens meanwhile has one history. What is opened after the
// last was closed has another.
type Opened struct {
	mu   sync.Mutex
	file *openFile
}

type openFile struct {
	info os.FileInfo
	id   lease.Owner
	uses int
}

// openFiles are those of this process.
var openFiles struct {
	sync.Mutex
	all []*openFile
}

// File returns the history of the file at path. It changes if another file is there.
func (o *Opened) File(path string) (lease.Owner, error) {
	info, err := os.Stat(path)
	if err != nil {
		return lease.Owner{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil || !os.SameFile(o.file.info, info) {
		o.drop()
		o.file = use(info)
	}
	return o.file.id, nil
}

// Close ends the opening.
func (o *Opened) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop()
}

func use(info os.FileInfo) *openFile {
	openFiles.Lock()
	defer openFiles.Unlock()
	for _, f := range openFiles.all {
		if os.SameFile(f.info, info) {
			f.uses++
			return f
		}
	}
	f := &openFile{info: info, id: lease.NewOwner(), uses: 1}
	openFiles.all = append(openFiles.all, f)
	return f
}

func (o *Opened) drop() {
	if o.file == nil {
		return
	}
	openFiles.Lock()
	defer openFiles.Unlock()
	if o.file.uses--; o.file.uses == 0 {
		openFiles.all = slices.DeleteFunc(openFiles.all, func(f *openFile) bool { return f == o.file })
	}
	o.file = nil
}

// History is what a session has learned of its server.
type History struct {
	// Name differs for each start of a server, and for each restore.
	Name string
	// Newest is the start of the newest era of the table, -1 if there is none.
	Newest lease.Token
	// Recorded is how many histories the table has. Known says that this is the newest of them; in
	// a file, which has several at once, that it is one of them.
	Recorded int64
	Known    bool
	// ReadOnly says that the server takes no writes.
	ReadOnly bool
	// From is the larger value of compatible_from: of Core, and of Shared if it is there.
	From []byte
}

// Dest returns the destinations of section era-look.
func (h *History) Dest() []any {
	return []any{&h.Name, &h.Newest, &h.Recorded, &h.Known, &h.ReadOnly, &h.From}
}
