package rules

import "go/ast"

// sleeping are the test files that may sleep, and why.
var sleeping = map[string]string{}

func testRules() []rule {
	return []rule{
		{"no sleeping tests", "a test that sleeps is slow, and fails on a slower machine: wait for what happens. Exceptions stand in the table sleeping, with their reason", checkSleep},
		{"skips say why", "a test that doesn't run says why, or nobody knows what was tested", checkSkips},
	}
}

func checkSleep(t *tree) (faults []fault) {
	needed := map[string]bool{}
	t.callsInTests(func(s *source, c *ast.CallExpr) {
		if from, name := selector(c.Fun); from == "time" && name == "Sleep" {
			needed[s.path] = true
			if sleeping[s.path] == "" {
				faults = append(faults, t.at(c, "time.Sleep"))
			}
		}
	})
	return append(faults, unused(sleeping, needed, "tests_test.go")...)
}

func checkSkips(t *tree) (faults []fault) {
	t.callsInTests(func(_ *source, c *ast.CallExpr) {
		if name := called(c); name == "SkipNow" || name == "Skip" && len(c.Args) == 0 {
			faults = append(faults, t.at(c, "%s gives no reason", name))
		}
	})
	return faults
}

// callsInTests visits the calls in test files, and in suites that tests call.
func (t *tree) callsInTests(visit func(*source, *ast.CallExpr)) {
	for _, p := range t.packages {
		for _, s := range p.all() {
			if !s.imports("testing") {
				continue
			}
			ast.Inspect(s.ast, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					visit(s, c)
				}
				return true
			})
		}
	}
}
