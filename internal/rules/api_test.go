package rules

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// untyped are the exported names that may use any, as "folder.Name" or
// "folder.Type.Name", each with its reason.
var untyped = map[string]string{}

func apiRules() []rule {
	return []rule{
		{"no any in the API", "a job is typed from end to end: what an `any` lets through is found while it runs, not when it is built. As a type parameter's constraint it is fine; exceptions stand in the table untyped, with their reason", checkAny},
		{"doc comments", "every exported name tells what it is, its unit, default and errors where it has them, in a comment that begins with the name", checkDocs},
	}
}

// exported is a name that a package shows.
type exported struct {
	name  string // "Name", or "Type.Method"
	ident *ast.Ident
	node  ast.Node          // the function, or the spec of a type, constant or variable
	doc   *ast.CommentGroup // its own
	group *ast.CommentGroup // of the parentheses around it
}

// exports lists what a package's code shows: functions, types, constants,
// variables, and the methods of exported types.
func (p *pkg) exports() (all []exported) {
	for _, s := range byPath(p.code) {
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if receiver := receiverOf(d); d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver)) {
					name := strings.TrimPrefix(receiver+"."+d.Name.Name, ".")
					all = append(all, exported{name, d.Name, d, d.Doc, nil})
				}
			case *ast.GenDecl:
				all = append(all, exportsOf(d)...)
			}
		}
	}
	return all
}

func exportsOf(d *ast.GenDecl) (all []exported) {
	group := d.Doc
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if !d.Lparen.IsValid() {
				doc = d.Doc
			}
			if spec.Name.IsExported() {
				all = append(all, exported{spec.Name.Name, spec.Name, spec, doc, group})
			}
		case *ast.ValueSpec:
			doc := spec.Doc
			if doc == nil {
				doc = spec.Comment
			}
			for _, n := range spec.Names {
				if n.IsExported() {
					all = append(all, exported{n.Name, n, spec, doc, group})
				}
			}
		}
	}
	return all
}

// receiverOf is the name of the type that a method belongs to.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	kind := d.Recv.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.IndexExpr:
			kind = k.X
		case *ast.IndexListExpr:
			kind = k.X
		case *ast.Ident:
			return k.Name
		default:
			return ""
		}
	}
}

func checkAny(t *tree) (faults []fault) {
	needed := map[string]bool{}
	for _, p := range t.packages {
		if !p.public() {
			continue
		}
		for _, e := range p.exports() {
			for _, n := range t.anyIn(p, e.node) {
				name := strings.TrimPrefix(p.folder+"."+e.name, "..")
				needed[name] = true
				if untyped[name] == "" {
					faults = append(faults, t.at(n, "%s uses any", name))
				}
			}
		}
	}
	return append(faults, unused(untyped, needed, "api_test.go")...)
}

// anyIn finds where a declaration uses an interface without methods, other than
// as a constraint. Of an alias for a type of an inner package, that type is
// looked at.
func (t *tree) anyIn(p *pkg, declared ast.Node) []ast.Node {
	switch d := declared.(type) {
	case *ast.FuncDecl:
		return anyTypes(p, d.Type)
	case *ast.TypeSpec:
		if inner, spec := t.aliased(p, d); spec != nil {
			return t.anyIn(inner, spec)
		}
		return anyTypes(p, d.Type)
	case *ast.ValueSpec:
		if d.Type != nil {
			return anyTypes(p, d.Type)
		}
	}
	return nil
}

func anyTypes(p *pkg, root ast.Node) (found []ast.Node) {
	members := func(list *ast.FieldList) {
		for _, f := range list.List {
			if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
				found = append(found, anyTypes(p, f.Type)...)
			}
		}
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if p.info.Uses[n] == types.Universe.Lookup("any") {
				found = append(found, n)
			}
		case *ast.FuncType: // without its type parameters
			found = append(found, anyTypes(p, n.Params)...)
			if n.Results != nil {
				found = append(found, anyTypes(p, n.Results)...)
			}
			return false
		case *ast.StructType: // without what it doesn't show
			members(n.Fields)
			return false
		case *ast.InterfaceType:
			if n.Methods.NumFields() == 0 {
				found = append(found, n)
			}
			members(n.Methods)
			return false
		}
		return true
	})
	return found
}

// aliased finds the declaration of the inner package's type that an alias
// stands for.
func (t *tree) aliased(p *pkg, d *ast.TypeSpec) (*pkg, *ast.TypeSpec) {
	target, ok := d.Type.(*ast.SelectorExpr)
	if !ok || !d.Assign.IsValid() {
		return nil, nil
	}
	from, _ := target.X.(*ast.Ident)
	for _, inner := range t.packages {
		if from == nil || inner.name != from.Name || inner == p || !inner.under("internal") {
			continue
		}
		for _, e := range inner.exports() {
			if spec, ok := e.node.(*ast.TypeSpec); ok && e.name == target.Sel.Name {
				return inner, spec
			}
		}
	}
	return nil, nil
}
