// Command letters is the job intake with a sink for bad records.
package main

import (
	"github.com/sluicestream/sluice"
	"github.com/sluicestream/sluice/file"
	"github.com/sluicestream/sluice/internal/torture/testjobs/intake/entries"
)

func main() {
	job := entries.Job()
	job.DeadLetter("letters", file.Append[sluice.DeadLetter]("out/letters"))
	sluice.Main(job)
}
