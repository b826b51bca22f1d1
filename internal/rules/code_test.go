package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

func codeRules() []rule {
	return []rule{
		{"no mutable globals", "two jobs in one process share nothing: a package's variables are set where they are declared, and never again", checkGlobals},
		{"no init", "importing a package does nothing; what has to be set up is set up by whoever uses it", checkInit},
		{"no goroutine in a constructor", "who makes a thing decides when it begins to run, and can wait for its end; New functions only make", checkConstructors},
		{"no context in a struct", "a context belongs to a call: hidden in a struct that users hold, nobody sees what it cancels", checkContexts},
		{"the world behind env", "clock, randomness, files, network and output are reached through env alone, so that a test can put others in their place; exceptions stand in the table worldly, with their reason", checkWorld},
		{"no names made from a position", "state named by its place in the job is orphaned by the next inserted step: names are the author's", checkNames},
	}
}

// checkGlobals refuses variables that are declared without a value, that hold
// what is made to be changed, or that are written to anywhere.
func checkGlobals(t *tree) (faults []fault) {
	for _, p := range t.packages {
		globals := map[types.Object]bool{}
		for _, s := range byPath(p.code) {
			for _, d := range s.ast.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.VAR || embedded(g) {
					continue
				}
				for _, spec := range g.Specs {
					v := spec.(*ast.ValueSpec)
					for _, n := range v.Names {
						globals[p.info.Defs[n]] = true
					}
					if len(v.Values) == 0 {
						faults = append(faults, t.at(v, "variable %s has no value where it is declared", v.Names[0].Name))
					}
					for _, value := range v.Values {
						if changeable(value) {
							faults = append(faults, t.at(v, "variable %s holds what is made to be changed", v.Names[0].Name))
						}
					}
				}
			}
		}
		faults = append(faults, p.writes(t, globals)...)
	}
	return faults
}

func embedded(g *ast.GenDecl) bool {
	if g.Doc == nil {
		return false
	}
	for _, c := range g.Doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// changeable tells whether a value only makes sense if it is changed later.
func changeable(value ast.Expr) bool {
	switch v := value.(type) {
	case *ast.UnaryExpr:
		return v.Op == token.AND
	case *ast.CallExpr:
		f, ok := v.Fun.(*ast.Ident)
		return ok && (f.Name == "make" || f.Name == "new")
	case *ast.CompositeLit:
		s, ok := v.Type.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		from, ok := s.X.(*ast.Ident)
		return ok && (from.Name == "sync" || from.Name == "atomic")
	}
	return false
}

// writes finds where code assigns to one of the variables, to a part of one, or
// takes its address.
func (p *pkg) writes(t *tree, globals map[types.Object]bool) (faults []fault) {
	check := func(target ast.Expr) {
		if n := rootOf(target); n != nil && globals[p.info.Uses[n]] {
			faults = append(faults, t.at(n, "variable %s is written to", n.Name))
		}
	}
	for _, s := range byPath(p.code) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, target := range n.Lhs {
					check(target)
				}
			case *ast.IncDecStmt:
				check(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					check(n.X)
				}
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					check(n.Key)
					check(n.Value)
				}
			}
			return true
		})
	}
	return faults
}

// rootOf is the variable that an expression is a part of.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func checkInit(t *tree) (faults []fault) {
	for f := range t.functions() {
		if f.Recv == nil && f.Name.Name == "init" {
			faults = append(faults, t.at(f, "func init"))
		}
	}
	return faults
}

func checkConstructors(t *tree) (faults []fault) {
	for f := range t.functions() {
		if f.Recv != nil || f.Body == nil || !isConstructor(f.Name.Name) {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				faults = append(faults, t.at(g, "%s starts a goroutine", f.Name.Name))
			}
			return true
		})
	}
	return faults
}

// isConstructor tells whether a function is called New, NewThing or newThing.
func isConstructor(name string) bool {
	thing, ok := strings.CutPrefix(strings.Replace(name, "new", "New", 1), "New")
	return ok && (thing == "" || ast.IsExported(thing))
}

// functions are those of all packages' code, without tests.
func (t *tree) functions() func(yield func(*ast.FuncDecl) bool) {
	return func(yield func(*ast.FuncDecl) bool) {
		for _, p := range t.packages {
			for _, s := range byPath(p.code) {
				for _, d := range s.ast.Decls {
					if f, ok := d.(*ast.FuncDecl); ok && !yield(f) {
						return
					}
				}
			}
		}
	}
}

func checkContexts(t *tree) (faults []fault) {
	for _, p := range t.packages {
		if !p.public() {
			continue
		}
		for _, s := range byPath(p.code) {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				if st, ok := n.(*ast.StructType); ok {
					for _, f := range st.Fields.List {
						if from, name := selector(f.Type); from == "context" && name == "Context" {
							faults = append(faults, t.at(f, "a struct holds a context"))
						}
					}
				}
				return true
			})
		}
	}
	return faults
}

// selector takes apart an expression of the form from.name.
func selector(e ast.Expr) (from, name string) {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return x.Name, s.Sel.Name
}

// naming are the functions and fields that take the name of a part of a job.
var naming = map[string]bool{
	"NewJob": true, "NewState": true, "NewMapState": true, "NewListState": true, "NewSortedState": true, "NewOutput": true,
	"From": true, "To": true, "Join": true, "Dedupe": true, "OnTimer": true, "DeadLetter": true,
	"Name": true, "Operator": true, "State": true, "Sink": true, "Source": true,
}

func checkNames(t *tree) (faults []fault) {
	for _, p := range t.packages {
		for _, s := range byPath(p.code) {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if len(n.Args) > 0 && naming[called(n)] && hasNumber(n.Args[0]) {
						faults = append(faults, t.at(n.Args[0], "a number makes the name that %s is given", called(n)))
					}
				case *ast.KeyValueExpr:
					// In programs such fields are often a record's.
					if field, ok := n.Key.(*ast.Ident); ok && naming[field.Name] && !p.under(programs...) && hasNumber(n.Value) {
						faults = append(faults, t.at(n, "a number makes the name in field %s", field.Name))
					}
				}
				return true
			})
		}
	}
	return faults
}

// called is the name of the function or method that is called.
func called(c *ast.CallExpr) string {
	f := c.Fun
	switch g := f.(type) {
	case *ast.IndexExpr:
		f = g.X
	case *ast.IndexListExpr:
		f = g.X
	}
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// hasNumber tells whether an expression writes a number into a text.
func hasNumber(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			switch called(c) {
			case "Itoa", "FormatInt", "FormatUint":
				found = true
			case "Sprintf":
				format, ok := c.Args[0].(*ast.BasicLit)
				found = found || ok && verbs(format.Value)
			}
		}
		return !found
	})
	return found
}

// verbs tells whether a format has a verb for whole numbers.
func verbs(quoted string) bool {
	format, err := strconv.Unquote(quoted)
	if err != nil {
		return false
	}
	for _, piece := range strings.Split(format, "%")[1:] {
		if strings.HasPrefix(strings.TrimLeft(piece, "+-# 0123456789"), "d") {
			return true
		}
	}
	return false
}
