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

// run runs a case. The reason is printed if it fails.
func run(t *testing.T, name, reason string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Cleanup(func() {
			if t.Failed() {
				t.Log("why this matters: " + reason)
			}
		})
		test(t)
	})
}
