// Command fixed is the job visits without a fault.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/torture/testjobs/visits/pages"
)

func main() { sluice.Main(pages.Job(false)) }
