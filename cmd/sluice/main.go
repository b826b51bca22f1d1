// Command sluice looks into a checkpoint store: what jobs have committed, where
// they stand, and what is in their state. It needs no job's code.
//
//	sluice log spend
//	sluice status spend
//	sluice state read spend spend ann
//	sluice state export spend --format csv --to spend-csv
package main

import (
	"os"

	"github.com/sluicestream/sluice/internal/cli"
)

func main() { os.Exit(cli.RunSluice(os.Args[1:])) }
