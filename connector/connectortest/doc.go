// Package connectortest is the suite that every source and sink of Sluice
// passes. A connector's own test says how to set one up, and runs it:
//
//	func TestSource(t *testing.T) {
//		connectortest.TestSource(t, func(t *testing.T) connectortest.SourceFixture[Order] { … })
//	}
//
// Each case is a subtest, and a failure says why Sluice relies on what was
// tested. A fixture is made anew for each case.
package connectortest

import "testing"

// testCase is a case of a suite, and why Sluice relies on what it tests.
type testCase struct {
	name, reason string
	test         func(t *testing.T)
}

// runAll runs cases. The reason is printed of those that fail.
func runAll(t *testing.T, cases []testCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Log("why this matters: " + c.reason)
				}
			})
			c.test(t)
		})
	}
}
