package figures

import (
	"fmt"
	"go/ast"
	"go/types"
)

const (
	mostFields  = 12
	mostParams  = 5
	mostMethods = 12
)

// shapes counts what is too large to be read at a glance.
func shapes(list []*Package) []Figure {
	var structs, funcs, interfaces []counted
	for _, p := range list {
		for _, file := range p.files {
			v := visitor{p: p, structs: &structs, funcs: &funcs, interfaces: &interfaces}
			ast.Walk(v, file)
		}
	}
	figure := func(name, counts string, list []counted) Figure {
		return Figure{Name: name, Value: len(list), Counts: counts + " in the product", Why: most(list)}
	}
	return []Figure{
		figure("large.structs", fmt.Sprintf("structs with more than %d fields", mostFields), structs),
		figure("large.parameters",
			fmt.Sprintf("functions and methods with more than %d parameters", mostParams), funcs),
		figure("large.interfaces", fmt.Sprintf(
			"interfaces with more than %d methods, embedded ones included", mostMethods), interfaces),
	}
}

// visitor looks at the types and functions of a file. Its name is that of the declaration around.
type visitor struct {
	p                          *Package
	name                       string
	structs, funcs, interfaces *[]counted
}

func (v visitor) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.TypeSpec:
		v.name = n.Name.Name
	case *ast.ValueSpec:
		v.name = n.Names[0].Name
	case *ast.FuncDecl:
		v.name = NameOf(n)
		v.note(v.funcs, n.Type.Params.NumFields(), mostParams)
	case *ast.FuncLit:
		v.note(v.funcs, n.Type.Params.NumFields(), mostParams)
	case *ast.StructType:
		v.note(v.structs, fields(n), mostFields)
	case *ast.InterfaceType:
		v.note(v.interfaces, v.methods(n), mostMethods)
	}
	return v
}

func (v visitor) note(list *[]counted, n, most int) {
	if n > most {
		*list = append(*list, counted{v.p.short() + ": " + v.name, n})
	}
}

// NameOf returns the name of a function, and that of a method with its receiver.
func NameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return fmt.Sprintf("(%s) %s", types.ExprString(f.Recv.List[0].Type), f.Name.Name)
}

// fields counts an embedded field as one.
func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// methods counts those of embedded interfaces too. An interface of another module, whose methods
// are not known here, counts as one.
func (v visitor) methods(i *ast.InterfaceType) (n int) {
	typ, ok := v.p.info.Types[i].Type.(*types.Interface)
	if !ok {
		return 0
	}
	n = typ.NumMethods()
	for e := range typ.EmbeddedTypes() {
		if b, ok := e.(*types.Basic); ok && b.Kind() == types.Invalid {
			n++
		}
	}
	return n
}
