// Command broken is the job visits with folds that panic on some records.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/internal/torture/testjobs/visits/pages"
)

func main() { sluice.Main(pages.Job(true)) }
