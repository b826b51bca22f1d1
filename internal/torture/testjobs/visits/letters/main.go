// Command letters is the job visits with folds that panic on some records, and
// a sink for these.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/torture/testjobs/visits/pages"
)

func main() {
	job := pages.Job(true)
	job.DeadLetter("letters", file.Append[sluice.DeadLetter]("out/letters"))
	sluice.Main(job)
}
