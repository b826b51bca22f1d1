// Command strict is the job intake, which stops at a bad record.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/torture/testjobs/intake/entries"
)

func main() { sluice.Main(entries.Job()) }
