// Budgets measures the figures that budgets.txt bounds, and fails if one is above its budget:
//
//	go run ./internal/house/budgets [-why] [-write] [-dir TREE]
//
// ROWLOCK_TEST_POSTGRES names the server on which the path of a lock is measured. -why lists what
// contributes to each figure. -write lowers the budgets to today's figures and raises none.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rowlockdb/rowlock/internal/house/figures"
	"github.com/rowlockdb/rowlock/internal/house/lockpath"
)

func main() {
	why := flag.Bool("why", false, "list what contributes to each figure")
	write := flag.Bool("write", false, "lower the budgets to today's figures")
	dir := flag.String("dir", ".", "the root of the tree")
	flag.Parse()
	if err := run(*dir, os.Getenv("ROWLOCK_TEST_POSTGRES"), *why, *write); err != nil {
		fmt.Fprintln(os.Stderr, "budgets:", err)
		os.Exit(1)
	}
}

func run(dir, postgres string, why, write bool) error {
	if postgres == "" {
		return errors.New("ROWLOCK_TEST_POSTGRES names no server: make budgets starts one")
	}
	budgets, err := figures.ReadBudgets(filepath.Join(dir, figures.File))
	if err != nil {
		return err
	}
	ofSource, err := figures.OfSource(dir)
	if err != nil {
		return err
	}
	if write {
		ofPath, err := lockpath.Largest(dir, postgres)
		if err != nil {
			return err
		}
		for _, lowered := range budgets.Lower(slices.Concat(ofPath, ofSource)) {
			fmt.Println(lowered)
		}
		return budgets.Write()
	}
	ofPath, err := lockpath.Within(budgets, dir, postgres)
	if err != nil {
		return err
	}
	all := slices.Concat(ofPath, ofSource)
	fmt.Print(budgets.Table(all, why))
	return budgets.Check(all)
}
