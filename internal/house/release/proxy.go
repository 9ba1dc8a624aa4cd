package main

import (
	"archive/zip"
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// publish puts a module into the proxy, in the form that the go command asks a proxy for
// (https://go.dev/ref/mod#goproxy-protocol).
func (r *release) publish(module string) error {
	folder := filepath.Join(r.proxy, path.Join(figures.Module, module), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": r.version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(r.tree, module, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"list": []byte(r.version + "\n"), r.version + ".info": info, r.version + ".mod": mod,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
	}
	return r.zip(module, filepath.Join(folder, r.version+".zip"))
}

// zip writes a module's files, those of modules below it left out. A module in a folder gets the
// repository's license, as one that the go command fetches from git does.
func (r *release) zip(module, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, out.Close()) }()
	z := zip.NewWriter(out)
	within := path.Join(figures.Module, module) + "@" + r.version
	files, err := r.files(module)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := add(z, within+"/"+name, filepath.Join(r.tree, module, name)); err != nil {
			return err
		}
	}
	if module != "" {
		if err := add(z, within+"/LICENSE", filepath.Join(r.tree, "LICENSE")); err != nil {
			return err
		}
	}
	return z.Close()
}

// files are those of a module, relative to it.
func (r *release) files(module string) (files []string, err error) {
	top := filepath.Join(r.tree, module)
	err = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != top && (d.Name() == ".git" || isModule(name)):
			return fs.SkipDir
		case !d.Type().IsRegular(): // a link is left out by the go command, too
			return nil
		}
		relative, err := filepath.Rel(top, name)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	return files, err
}

func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

func add(z *zip.Writer, as, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	w, err := z.Create(as)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}
